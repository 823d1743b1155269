"""The `--help` text of each command, with its examples."""

RUN = """Compare TensorFlow versions: build or find each, measure side by side, print verdicts.

[bold]Examples[/bold]

  tfcompare run --versions 1.14,2.0,2.13

  tfcompare run --versions 2.0,2.13 --workload 'train_loop\\[mode=eager,model=small]'

  tfcompare run --versions 1.14,2.0 --suite smoke --engine venv --out runs/first

  tfcompare run --versions 2.0,2.13 --workloads mine

  tfcompare run --versions 2.0,2.13 --format json --quiet > comparison.json

  tfcompare run --more runs/first --budget 10m
"""

REPORT = """Redraw a run's report from its directory.

[bold]Examples[/bold]

  tfcompare report runs/first

  tfcompare report runs/first --format json --output first.json

  tfcompare report runs/first --only slower,died --sort ratio

  tfcompare report runs/first --format html

  tfcompare report runs/first --table seed

  tfcompare report runs/all --table trend
"""

COMPARE = """Compare two runs of the same cases: which of the ratios that each found are other ones now.

[bold]Examples[/bold]

  tfcompare compare runs/monday runs/friday

  tfcompare compare runs/laptop runs/server --format json
"""

EXPORT = """Write a run for other programs: spreadsheets, pull requests, CI, dashboards.

[bold]Examples[/bold]

  tfcompare export runs/first --to csv --output first.csv

  tfcompare export runs/first --to markdown

  tfcompare export runs/first --to parquet --table calls --output calls.parquet
"""

DOCTOR = """Say what this machine can run and how noisy it is right now, and what to do about each finding.

[bold]Examples[/bold]

  tfcompare doctor

  tfcompare doctor --versions 1.14,2.0..2.4 --no-probe

  tfcompare doctor --versions 2.13 --gpu --no-probe

  tfcompare doctor --cpuset 2-3 --format json
"""

BISECT = """Find the version that made a case slower or faster, by measured verdicts between two versions.

[bold]Examples[/bold]

  tfcompare bisect --good 1.14 --bad 2.13 --workload 'predict\\[call=predict,state=uncompiled,model=tiny]'

  tfcompare bisect --good 2.20 --bad 2.21 --nightlies --workload 'power\\[style=function]' --out runs/hunt

  tfcompare bisect --resume runs/hunt

  tfcompare bisect --good nightly-20260701 --bad nightly --workload 'power\\[style=function]'
"""

NIGHTLY = """Measure every night, keep what came out, and raise an alarm only when something really changed."""

NIGHTLY_RUN = """Measure a night and judge it by all before; exits with 1 if there is a new alarm of something slower.

A suite is measured against a pinned reference, and what looks changed is measured again in the same night.

[bold]Examples[/bold]

  tfcompare nightly run --versions 2.13,nightly

  tfcompare nightly run --versions 1.14,2.0,2.13 --suite seed --engine venv --limit 4h

  tfcompare nightly run --versions 2.13,nightly --notify 'mailto://${USER}:${PASSWORD}@example.org' --heartbeat
"""

NIGHTLY_INSTALL = """Have this machine measure every night, by a systemd timer or a line in the crontab.

What it writes is shown first, and written when you agree. Every other flag is one of `nightly run`.

[bold]Examples[/bold]

  tfcompare nightly install --at 02:00 --versions 2.13,nightly --suite seed

  tfcompare nightly install --at 23:30 --missed skip --scheduler cron --yes -- --versions 1.14,2.0,2.13 --limit 4h

  tfcompare nightly install --versions 2.13,nightly --notify-file ~/.config/tfcompare/notify
"""

NIGHTLY_STATUS = """Say what is scheduled here, when the next night begins, what came of the last, and if one runs now.

[bold]Examples[/bold]

  tfcompare nightly status

  tfcompare nightly status --quiet || echo 'look after the nights'
"""

NIGHTLY_UNINSTALL = """Take away again what `nightly install` has written, and nothing else.

[bold]Examples[/bold]

  tfcompare nightly uninstall
"""

NIGHTLY_SERVE = """Wait for each night and run it, until this is ended; for containers, where nothing else calls it.

Every other flag is one of `nightly run`.

[bold]Examples[/bold]

  tfcompare nightly serve --at 02:00 --versions 2.13,nightly --suite seed
"""

NIGHTLY_NOTIFY_TEST = """Send a test message to everybody who would be told of a night.

[bold]Examples[/bold]

  tfcompare nightly notify-test --notify 'mailto://${USER}:${PASSWORD}@example.org'

  tfcompare nightly notify-test --notify-file ~/.config/tfcompare/notify
"""

HISTORY = """Show what the nights measured: all series and alarms, or one case night by night, as a table and a plot.

[bold]Examples[/bold]

  tfcompare history

  tfcompare history 'predict\\[model=tiny]' --version nightly --last 60

  tfcompare history train_loop --since 2026-09-01 --format csv > nights.csv
"""

HISTORY_QUERY = """Ask the history in SQL; without a query, say which views and columns there are.

[bold]Examples[/bold]

  tfcompare history query

  tfcompare history query 'SELECT night, version, ratio FROM series ORDER BY night'

  tfcompare history query 'SELECT * FROM points' --format parquet --output points.parquet
"""

HISTORY_IMPORT = """Add the contrasts of a run to the history, as a night of their own; the run stays where it is.

[bold]Examples[/bold]

  tfcompare history import runs/first

  tfcompare history import runs/tuesday --night 2026-11-17 --name 2.22.0.dev20261117=nightly
"""

HISTORY_ALARMS = """List alarms: size, first bad night, what changed then, the commands to reproduce and bisect."""

HISTORY_KNOWN = """Say that an alarm is known, and why; nights list it with this note until it recovers.

[bold]Examples[/bold]

  tfcompare history known 3f9a12 --note 'new allocator, wanted'
"""

HISTORY_MUTE = """Say nothing more of an alarm, for good or until a day.

[bold]Examples[/bold]

  tfcompare history mute 3f9a12 --note 'fix is in review' --until 2026-12-31
"""

HISTORY_UNMUTE = """Take back that an alarm is muted or known: it is again what the nights made of it."""

HISTORY_SITE = """Write the history as static pages, with a feed of its alarms; they open without a server.

[bold]Examples[/bold]

  tfcompare history site --out public
"""

REPRODUCE = """Test published claims about TensorFlow's speed: reproduced, not reproduced, or inconclusive.

[bold]Examples[/bold]

  tfcompare reproduce --list

  tfcompare reproduce predict-after-compile

  tfcompare reproduce --suite seed --format json > claims.json
"""

PROFILE = """Say where the time of a case goes in each version: which functions are new, and which have grown.

[bold]Examples[/bold]

  tfcompare profile --versions 1.14,2.0 --workload 'predict\\[state=compiled,model=tiny,call=predict]'

  tfcompare profile --versions 2.13 --workload 'power\\[style=eager]' --calls 50 --out runs/where
"""

LIST = """List what there is: versions, workloads, suites or claims.

[bold]Examples[/bold]

  tfcompare list workloads

  tfcompare list versions --format json
"""

IMAGES = """Build the images of versions, look at them, check them, move them, and free what they take."""

IMAGES_BUILD = """Build the image of each version named, unless it is there; nothing is run in it.

[bold]Examples[/bold]

  tfcompare images build

  tfcompare images build 2.8..2.13 --at-once 2

  tfcompare images build 2.13 --base 'registry.example:5000/python:{python}-slim'

  TFCOMPARE_INDEX_URL=https://user:password@mirror.example/simple tfcompare images build 2.13

  tfcompare images build 2.13 --wheelhouse wheels --sbom sboms
"""

IMAGES_SBOM = """Write what the image of a version is made of, as CycloneDX in JSON.

[bold]Examples[/bold]

  tfcompare images sbom 2.13 --output 2.13.cdx.json
"""

IMAGES_LIST = """Show the images that there are, and whether they are what the table of versions says now.

[bold]Examples[/bold]

  tfcompare images list

  tfcompare images list --all --format json
"""

IMAGES_VERIFY = """Start each image and check what is in it against the table of versions and the locks.

[bold]Examples[/bold]

  tfcompare images verify

  tfcompare images verify 1.14 2.13 --format json
"""

IMAGES_PRUNE = """Free what no version leads to any more: old images, containers of runs that were killed.

[bold]Examples[/bold]

  tfcompare images prune

  tfcompare images prune --environments --yes
"""

IMAGES_LOCK = """Ask the registry which digest each base image has now, and build from that from now on.

[bold]Examples[/bold]

  tfcompare images lock

  tfcompare images lock 1.14 2.0 --gpu

  tfcompare images lock --base 'registry.example:5000/python:{python}-slim'
"""

IMAGES_SAVE = """Write the current images of some versions into one file, for a machine without a registry.

[bold]Examples[/bold]

  tfcompare images save images.tar 1.14 2.0 2.13
"""

IMAGES_LOAD = """Bring the images of such a file into this engine, and say which versions are ready with them.

[bold]Examples[/bold]

  tfcompare images load images.tar
"""
