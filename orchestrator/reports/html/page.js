// Filters and sorts tables, and writes a case's figures when they are opened. Foreign text is inserted only as text.
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
  // The form is reset only after this event.
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // Rows on a phone, with a label in each cell; they need roles because a changed display removes the usual ones

  for (const table of all("table.sortable")) {
    table.classList.add("stacked");
    const labels = all("th", table.tHead).map((head) => head.dataset.label);
    for (const row of table.tBodies[0].rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((one, place) => {
        one.setAttribute("role", one.tagName === "TH" ? "rowheader" : "cell");
        if ("sort" in one.dataset) one.dataset.label = labels[place];
      });
    }
  }

  // Sorting: first up, then down; empty cells stay last

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

  // Figures with units

  const UNITS = [["h", 3.6e6], ["min", 6e4], ["s", 1e3], ["ms", 1], ["µs", 1e-3]];
  const duration = (ms) => {
    const [unit, factor] = UNITS.find((one) => ms >= one[1]) || UNITS[UNITS.length - 1];
    const value = ms / factor;
    return `${value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
  };
  const percent = (thousandths) => `${thousandths >= 0 ? "+" : ""}${(thousandths / 10).toFixed(1)}%`;

  // The figures of the plots as tables

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
  // The points of a path whose units are a point across and a thousandth upwards.
  const pointsOf = (path) => {
    const figures = path.getAttribute("d").match(/-?\d+/g).map(Number);
    let [place, down] = [0, 0];
    return Array.from({ length: Math.floor(figures.length / 2) }, (_, point) => {
      [place, down] = [place + figures[2 * point], down + figures[2 * point + 1]];
      return [place, -down];
    });
  };
  const TABLES = {
    rounds: (one) => {
      const { targets, numbers, times } = parsed(`data-${one.id}`);
      const lines = numbers.map((round, place) => (
        [round, ...times.map((of) => (of[place] === null ? "" : duration(of[place])))]));
      return tabled("Times of every replicate", ["Round", ...targets], lines);
    },
    calls: (one) => {
      const lines = all("svg[data-width]", one).flatMap((drawing) => {
        const [width, calls] = [Number(drawing.dataset.width), Number(drawing.dataset.calls)];
        const band = pointsOf(drawing.querySelector(".band"));
        return pointsOf(drawing.querySelector(".line")).map(([place, middle], point) => {
          const [from, to] = [place * width + 1, Math.min((place + 1) * width, calls)];
          const told = [middle, band[band.length - 1 - point][1], band[point][1]].map(percent);
          return [drawing.closest(".panel").firstChild.textContent, from === to ? from : `${from} – ${to}`, ...told];
        });
      });
      return tabled("Calls over time", ["Version", "Calls", "Median", "Lower quartile", "Upper quartile"], lines);
    },
  };

  // Opening

  for (const one of cases) {
    for (const inner of all("details.figures", one)) {
      inner.addEventListener("toggle", () => {
        if (inner.open && !inner.querySelector("table")) inner.append(TABLES[inner.dataset.table](one));
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
  // Following the same link again does not change the hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#case-']");
    if (link && link.hash === location.hash) openNamed();
  });
  const setAll = (open) => { for (const one of cases) if (!one.hidden) one.open = open; };
  byId("open-all").addEventListener("click", () => setAll(true));
  byId("close-all").addEventListener("click", () => setAll(false));
  // Some browsers cannot open sections for printing by the style sheet alone.
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

  openNamed();
})();
