"""What `--help` says of each command, with its examples."""

RUN = """Compare TensorFlow versions: build or find each, measure side by side, print verdicts.

[bold]Examples[/bold]

  tfcompare run --versions 1.14,2.0,2.13

  tfcompare run --versions 2.0,2.13 --workload 'train_loop\\[mode=eager,model=small]'

  tfcompare run --versions 1.14,2.0 --suite smoke --engine venv --out runs/first

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

DOCTOR = """Say how noisy this machine is right now, what could be seen on it, and what would help.

[bold]Examples[/bold]

  tfcompare doctor

  tfcompare doctor --cpuset 2-3 --format json
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
