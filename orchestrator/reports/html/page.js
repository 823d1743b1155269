// Filters, sorts, and draws a case's plots when it is opened. Text from elsewhere is only ever put in as text.
"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const parsed = (id) => JSON.parse(byId(id).textContent);
  root.classList.remove("no-js");

  // Colours

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const nameTheme = () => { byId("theme").textContent = isDark() ? "Light theme" : "Dark theme"; };
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // Filters: of every table with verdicts, and of the cases

  const form = byId("filter");
  const fields = ["text", "workload", "target", "verdict"].map((name) => [name, byId(`filter-${name}`)]);
  const rows = all("table.sortable tbody tr");
  const cases = all("details.case");
  const words = new Map();
  const wordsOf = (row) => {
    if (!words.has(row)) words.set(row, `${row.textContent} ${row.dataset.also || ""}`.toLowerCase());
    return words.get(row);
  };
  const matches = (row, wanted) => {
    for (const name of ["workload", "target", "verdict"]) {
      if (wanted[name] && row.dataset[name] !== wanted[name]) return false;
    }
    return wanted.text.every((word) => wordsOf(row).includes(word));
  };
  const filter = () => {
    const wanted = Object.fromEntries(fields.map(([name, field]) => [name, field.value]));
    wanted.text = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = new Set();
    let count = 0;
    for (const row of rows) {
      row.hidden = !matches(row, wanted);
      if (row.hidden) continue;
      count += 1;
      if (row.dataset.case) found.add(row.dataset.case);
    }
    for (const one of cases) one.hidden = !found.has(one.id);
    byId("filter-count").textContent = count === rows.length ? `${count} rows` : `${count} of ${rows.length} rows shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  // A form is reset after its event.
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // Sorting: up, down; rows without a figure stay last

  const compare = (one, other) => {
    if (one.figure !== null && other.figure !== null) return one.figure - other.figure;
    return one.text.localeCompare(other.text, "en", { numeric: true });
  };
  const sort = (head, place) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = head.closest("table").tBodies[0];
    const keyed = [...body.rows].map((row) => {
      const cell = row.cells[place];
      const figure = "sort" in cell.dataset ? Number(cell.dataset.sort) : null;
      return { row, figure, text: cell.textContent.trim() };
    });
    const [empty, full] = [keyed.filter((one) => !one.text), keyed.filter((one) => one.text)];
    full.sort((one, other) => (down ? compare(other, one) : compare(one, other)));
    body.append(...[...full, ...empty].map((one) => one.row));
  };
  for (const table of all("table.sortable")) {
    all("th button", table.tHead).forEach((button, place) => {
      button.addEventListener("click", () => sort(button.parentNode, place));
    });
  }

  // Copying: a table goes into a spreadsheet, a command into a terminal

  const asText = (table) => [...table.rows].map((row) => (
    [...row.cells].map((cell) => cell.innerText.trim().replace(/\s+/g, " ")).join("\t"))).join("\n");
  for (const button of all("button.copy")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const from = byId(button.dataset.from);
      try {
        await navigator.clipboard.writeText(from.matches("table") ? asText(from) : from.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(from);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }

  // Figures as they are read

  const UNITS = [["h", 3.6e6], ["min", 6e4], ["s", 1e3], ["ms", 1], ["µs", 1e-3]];
  const duration = (ms) => {
    const [unit, factor] = UNITS.find((one) => ms >= one[1]) || UNITS[UNITS.length - 1];
    const value = ms / factor;
    return `${value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
  };
  const percent = (thousandths) => `${thousandths >= 0 ? "+" : ""}${(thousandths / 10).toFixed(1)}%`;

  // The data of a case, as the plots name them

  const courses = (data) => data.calls.flatMap((course, place) => (course === null ? [] : course.middle.map((middle, point) => ({
    target: data.targets[place],
    call: Math.min(point * course.width + (course.width + 1) / 2, course.calls),
    low: course.low[point] / 1000,
    middle: middle === null ? null : middle / 1000,
    high: course.high[point] / 1000,
  })))).filter((one) => one.middle !== null);
  const quantile = (sorted, share) => {
    const place = (sorted.length - 1) * share;
    const low = sorted[Math.floor(place)];
    return low + (sorted[Math.ceil(place)] - low) * (place % 1);
  };
  const DATA = {
    overview: (data) => ({
      ratios: data.ratios.map(([target, name, ratio, low, high, verdict, margin]) => (
        { target, case: name, ratio, low, high, verdict, parity: 1, least: 1 / (1 + margin), most: 1 + margin })),
    }),
    spread: (data) => ({
      points: data.rounds.flatMap((rounds, place) => rounds.map(([round, ms]) => ({ target: data.targets[place], round, ms }))),
    }),
    forest: (data) => ({
      one: [{ ratio: 1 }],
      comparisons: data.comparisons.map(([target, ratio, low, high, verdict, margin]) => (
        { target, ratio, low, high, verdict, least: 1 / (1 + margin), most: 1 + margin })),
    }),
    trend: (data) => ({
      one: [{ ratio: 1 }],
      trend: data.order.map(([target, ratio, low, high, verdict]) => ({ target, ratio, low, high, verdict })),
      steps: data.steps.map(([before, target, step, verdict]) => ({ before, target, step, verdict })),
    }),
    pace: (data) => ({
      pace: data.order.map(([target]) => {
        const times = data.rounds[data.targets.indexOf(target)].map(([, ms]) => ms).sort((one, other) => one - other);
        return times.length ? { target, ms: quantile(times, 0.5), q1: quantile(times, 0.25), q3: quantile(times, 0.75) } : { target };
      }),
    }),
    calls: (data) => ({ calls: courses(data) }),
    phases: (data) => ({
      phases: data.phases.flatMap((times, place) => times.map((ms, phase) => (
        { target: data.targets[place], phase: ["build", "first", "second", "burst"][phase], ms })))
        .filter((one) => one.ms !== null),
    }),
  };

  // Drawing: one plot after the other, so that the page stays awake

  const specs = parsed("specs");
  const kept = new Map();
  const tip = byId("tip");
  const showTip = (_, event, item, value) => {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    tip.textContent = Object.entries(value).map(([name, told]) => `${name}: ${told}`).join("\n");
    const { innerWidth: width } = window;
    tip.style.left = `${Math.min(event.clientX + 12, width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  };
  const OPTIONS = { actions: false, ast: true, defaultStyle: false, mode: "vega-lite", renderer: "svg", tooltip: showTip };
  const dataOf = (id) => parsed(`data-${id}`);
  // Room left of a plot for the names of targets, or for those of cases, which are longer.
  const roomFor = (kind, width) => (kind !== "overview" ? 84 : width < 480 ? 130 : 280);
  const sized = (spec, kind, width) => {
    const names = roomFor(kind, width);
    const inner = Math.max(width - names - 26, 120);
    const legend = { ...spec.config.legend, columns: width < 480 ? 2 : 4 };
    const axis = { ...spec.config.axis, labelLimit: names - 8 };
    const config = { ...spec.config, legend, axis, axisY: { minExtent: names, maxExtent: names } };
    return spec.facet ? { ...spec, config, spec: { ...spec.spec, width: inner } } : { ...spec, config, width: inner };
  };
  const draw = async (figure) => {
    const place = figure.querySelector(".drawing");
    const width = Math.min(place.clientWidth, 1200);
    if (!width || (kept.has(figure) && kept.get(figure).width === width)) return;
    const data = dataOf(figure.closest("[id]").id);
    const { kind } = figure.dataset;
    const spec = { ...sized(specs[kind], kind, width), datasets: DATA[kind](data) };
    if (kept.has(figure)) kept.get(figure).result.finalize();
    // A separate frame: what embeds would take the role and the label from the place itself.
    const frame = document.createElement("div");
    place.replaceChildren(frame);
    kept.set(figure, { width, result: await vegaEmbed(frame, spec, OPTIONS) });
    // The place around it says in words what is drawn.
    frame.querySelector("svg").setAttribute("aria-hidden", "true");
    for (const part of all("[role]", frame)) part.removeAttribute("role");
  };
  let queue = Promise.resolve();
  let waiting = 0;
  const told = () => { byId("drawing").textContent = waiting > 8 ? `${waiting} plots to draw` : ""; };
  const request = (figures) => {
    waiting += figures.length;
    for (const figure of figures) {
      queue = queue.then(() => draw(figure)).catch((error) => console.error(error)).then(() => {
        waiting -= 1;
        told();
        return new Promise((go) => setTimeout(go));
      });
    }
    told();
  };
  const shown = () => all("figure.plot").filter((figure) => !figure.closest("details:not([open])"));
  let pause = 0;
  addEventListener("resize", () => {
    clearTimeout(pause);
    pause = setTimeout(() => request(shown()), 250);
  });

  // The same figures as tables

  const cell = (text, tag = "td", scope = "") => {
    const made = document.createElement(tag);
    made.textContent = text;
    if (scope) made.scope = scope;
    if (tag === "td") made.className = "figure";
    return made;
  };
  const tabled = (label, heads, lines) => {
    const table = document.createElement("table");
    table.createTHead().insertRow().append(...heads.map((head) => cell(head, "th", "col")));
    const body = table.createTBody();
    for (const [first, ...others] of lines) body.insertRow().append(cell(first, "th", "row"), ...others.map((one) => cell(one)));
    const frame = document.createElement("div");
    frame.className = "scroll";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", label);
    frame.append(table);
    return frame;
  };
  const TABLES = {
    rounds: (data) => {
      const numbers = [...new Set(data.rounds.flatMap((rounds) => rounds.map(([round]) => round)))].sort((a, b) => a - b);
      const found = data.rounds.map((rounds) => new Map(rounds));
      const lines = numbers.map((round) => [round, ...found.map((of) => (of.has(round) ? duration(of.get(round)) : ""))]);
      return tabled("Times of every replicate", ["Round", ...data.targets], lines);
    },
    calls: (data) => {
      const lines = data.calls.flatMap((course, place) => course === null ? [] : course.middle.map((middle, point) => {
        const [from, to] = [point * course.width + 1, Math.min((point + 1) * course.width, course.calls)];
        const told = [middle, course.low[point], course.high[point]].map((one) => (one === null ? "" : percent(one)));
        return [data.targets[place], from === to ? from : `${from} – ${to}`, ...told];
      }));
      return tabled("Calls over time", ["Version", "Calls", "Median", "Lower quartile", "Upper quartile"], lines);
    },
  };

  // Opening

  for (const one of cases) {
    one.addEventListener("toggle", () => { if (one.open) request(all("figure.plot", one)); });
    for (const inner of all("details.figures", one)) {
      inner.addEventListener("toggle", () => {
        if (inner.open && !inner.querySelector("table")) inner.append(TABLES[inner.dataset.table](dataOf(one.id)));
      });
    }
  }
  const openNamed = () => {
    const named = location.hash ? byId(location.hash.slice(1)) : null;
    if (!named || !named.matches("details.case")) return;
    named.hidden = false;
    named.open = true;
    named.scrollIntoView();
    named.querySelector("summary").focus({ preventScroll: true });
  };
  addEventListener("hashchange", openNamed);
  // The same link a second time changes no hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#case-']");
    if (link && link.hash === location.hash) openNamed();
  });
  const setAll = (open) => { for (const one of cases) if (!one.hidden) one.open = open; };
  byId("open-all").addEventListener("click", () => setAll(true));
  byId("close-all").addEventListener("click", () => setAll(false));
  // Where the style sheet alone cannot open what is printed.
  const closed = new Set();
  addEventListener("beforeprint", () => {
    for (const one of cases) {
      if (!one.open && !one.hidden) {
        closed.add(one);
        one.open = true;
      }
    }
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
    closed.clear();
  });

  request(shown());
  openNamed();
})();
