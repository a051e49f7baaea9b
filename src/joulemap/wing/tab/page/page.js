// Draws answers of joulemap.wing.tab.reply: every number and every sentence about it comes from there.
"use strict";
const start = performance.now();
const find = (id) => document.getElementById(id);
const form = find("form"), fields = form.elements;
const FIELDS = { compare: ["model", "chips", "precision", "batch", "runtime"], why: ["model", "chips", "precision", "batch", "runtime"], gpu: ["chip", "models", "weights", "prompt", "power", "bandwidth", "file"] };
const known = JSON.parse(find("static").textContent), defaults = known.defaults;
const times = (window.times = {});
let state, worker, isReady = false, lost = "", detected = null, asked = 0;
const waiting = new Map();

function make(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(one.style, value);
    else if (name.startsWith("on")) one.addEventListener(name.slice(2), value);
    else one.setAttribute(name, value);
  }
  one.append(...children);
  return one;
}
function draw(tag, attributes = {}, ...children) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  one.append(...children);
  return one;
}
const percent = (place) => `${(100 * place).toFixed(3)}%`;

// State and links
function readLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  const view = Object.hasOwn(defaults, given.get("view")) ? given.get("view") : "compare";
  const made = { view };
  for (const name of FIELDS[view]) made[name] = given.get(name) ?? defaults[view][name];
  return made;
}
const writeLink = (one) => `#${new URLSearchParams(one)}`;
const isSame = (one, other) => writeLink(one) === writeLink(other);
function go(changes, replaces = false) {
  const next = { view: state.view, ...state, ...changes };
  const made = { view: next.view };
  for (const name of FIELDS[next.view]) made[name] = next[name] ?? defaults[next.view][name];
  if (replaces) history.replaceState(null, "", writeLink(made));
  else history.pushState(null, "", writeLink(made));
  show();
}

// Form
function fill() {
  for (const one of document.querySelectorAll("[data-for]")) one.hidden = !one.dataset.for.split(" ").includes(state.view);
  for (const one of document.querySelectorAll("nav button"))
    if (one.dataset.view === state.view) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  for (const name of ["model", "chip", "precision", "batch", "runtime", "models", "weights", "prompt", "power", "bandwidth"]) {
    if (state[name] === undefined) continue;
    const field = fields[name];
    if (field.tagName === "SELECT" && ![...field.options].some((one) => one.value === state[name])) field.append(new Option(state[name]));
    field.value = state[name];
  }
  for (const name of ["power", "bandwidth"]) fields[`${name}_text`].value = `${fields[name].value} %`;
  find("forget").hidden = !state.file;
  const chips = state.chips ? state.chips.split(",") : [];
  if (state.view === "why") [fields.first.value, fields.second.value] = [chips[0] ?? "", chips[1] ?? ""];
  if (state.view === "compare")
    find("tags").replaceChildren(
      ...chips.filter(Boolean).map((name) =>
        make("button", { type: "button", "aria-label": `Remove ${name}`, onclick: () => go({ chips: chips.filter((one) => one !== name).join(",") }) }, `${name} ×`),
      ),
    );
}
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", ({ target }) => {
  const { name, value } = target;
  if (name === "own") return read([...target.files]);
  if (name === "add") {
    if (value.trim()) go({ chips: [...state.chips.split(",").filter(Boolean), value.trim()].join(",") });
    target.value = "";
    return undefined;
  }
  if (name === "first" || name === "second") return go({ chips: `${fields.first.value},${fields.second.value}` });
  return go({ [name]: value.trim() });
});
form.addEventListener("input", ({ target }) => {
  if (target.type === "range") {
    fields[`${target.name}_text`].value = `${target.value} %`;
    go({ [target.name]: target.value }, true);
  }
});
for (const one of document.querySelectorAll("nav button"))
  one.addEventListener("click", () => go({ view: one.dataset.view, chips: one.dataset.view === "why" && state.chips ? state.chips.split(",").slice(0, 2).join(",") : undefined }));
addEventListener("popstate", show);
addEventListener("hashchange", show);

// Files of the visitor
const drop = find("drop");
for (const name of ["dragover", "dragleave", "drop"])
  addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) read([...event.dataTransfer.files]);
  });
async function read(files) {
  if (!files.length) return;
  const { line, error } = await ask("check_file", files[0].name);
  find("file-line").textContent = line || error || "";
  if (line || error) return go({ view: "gpu" });
  await ask("mount", files);
  go({ view: "gpu", file: `/own/${files[0].name}` });
}
find("forget").addEventListener("click", () => go({ file: "" }));

// Python
function ask(call, ...args) {
  return new Promise((resolve) => {
    waiting.set(++asked, resolve);
    worker.postMessage({ id: asked, call, args });
  });
}
function begin() {
  const base = new URL(".", location.href).href, pyodide = new URL(document.body.dataset.pyodide, base).href;
  if (location.protocol === "file:") return lose("a page opened from a file cannot load Python. Serve this folder instead: python -m http.server");
  const source = new Blob([`importScripts(${JSON.stringify(new URL("worker.js", base).href)})`], { type: "text/javascript" });
  worker = new Worker(URL.createObjectURL(source)); // a worker of a blob has the policy of this page
  worker.onmessage = ({ data }) => {
    if (data.fault) return lose(`Python did not load from ${new URL(pyodide).host}. Check your connection, then reload the page`, data.fault);
    if (data.stage) {
      times[data.stage] = performance.now();
      if (data.stage === "joulemap") {
        isReady = true;
        show();
      } else tell(`Python is loading: ${data.stage} is there.`);
      return undefined;
    }
    waiting.get(data.id)(JSON.parse(data.text));
    return waiting.delete(data.id);
  };
  worker.onerror = (event) => lose("this browser refused to start Python", event.message);
  return worker.postMessage({ base, pyodide, numpy: document.body.dataset.numpy && new URL(document.body.dataset.numpy, pyodide).href });
}
function lose(reason, detail = "") {
  lost = `Only stored answers can be shown: ${reason}.`;
  find("state").title = detail;
  tell(lost);
  show();
}
const tell = (text) => { find("state").textContent = text; };

function readRenderer() {
  try {
    const context = document.createElement("canvas").getContext("webgl");
    const about = context.getExtension("WEBGL_debug_renderer_info");
    return String(context.getParameter(about ? about.UNMASKED_RENDERER_WEBGL : context.RENDERER) || "");
  } catch {
    return "";
  }
}
async function detect() {
  detected = await ask("match_renderer", readRenderer());
  find("gpu-line").textContent = detected.line;
  if (detected.chip && !new URLSearchParams(location.hash.slice(1)).has("chip")) go({ chip: detected.chip }, true);
}

// Answers
let busy = false, wanted = null;
async function show() {
  state = readLink();
  fill();
  const ready = known.answers.find(([one]) => isSame(one, state));
  if (ready) paint(ready[1]);
  else if (lost) paint({ error: "The answer to this question is not stored in the page." });
  find("decision").classList.toggle("stale", !ready && !isReady && !lost);
  if (!isReady) {
    find("answer").setAttribute("aria-busy", "true");
    return;
  }
  if (state.view === "gpu" && !detected) {
    detected = {};
    await detect();
  }
  wanted = state;
  if (busy) return;
  busy = true;
  while (wanted) {
    const one = wanted, begun = performance.now();
    wanted = null;
    tell("Computing …");
    const found = await ask("answer", JSON.stringify(one));
    if (!wanted) {
      paint(found);
      times.answer ??= performance.now();
      times.last = performance.now() - begun;
      tell(`Computed in this browser in ${(times.last / 1000).toFixed(2)} s.`);
      find("answer").removeAttribute("aria-busy");
    }
  }
  busy = false;
}
function paint(found) {
  times.paint ??= performance.now();
  const answer = find("answer"), decision = find("decision");
  decision.classList.remove("stale");
  if (found.error) {
    decision.replaceChildren(make("p", { class: "fault" }, found.error));
    return answer.replaceChildren();
  }
  const list = (items) => (items && items.length ? [make("ul", {}, ...items.map((one) => make("li", {}, one)))] : []);
  decision.replaceChildren(
    make("p", { class: "decision" }, found.line),
    make("p", { class: "soft" }, found.title ?? ""),
    ...list(found.why),
    ...(found.trust ? [make("p", { class: "soft" }, found.trust)] : []),
  );
  return answer.replaceChildren(
    ...found.left_out.map((one) => make("p", { class: "soft left-out" }, `Left out: ${one}`)),
    ...found.blocks.map((one) => make("section", {}, make("h2", {}, one.heading), ...DRAWN[one.kind](one))),
    ...(found.links && found.links.length
      ? [make("p", { class: "links" }, found.links_text, " ", ...found.links.map((one) => make("a", { href: writeLink(pick({ ...state, view: one.view, chips: one.chips })) }, one.text)))]
      : []),
    make("h2", {}, "The same on the command line"),
    make("pre", { id: "command" }, found.command),
    ...(navigator.clipboard ? [make("button", { type: "button", id: "copy", onclick: () => navigator.clipboard.writeText(found.command) }, "Copy")] : []),
  );
}
const pick = (one) => Object.fromEntries([["view", one.view], ...FIELDS[one.view].map((name) => [name, one[name]])]);

const axis = (ticks) => make("div", { class: "axis", "aria-hidden": "true" }, make("span", { class: "name" }), make("span", { class: "track" }, ...ticks.map((one) => make("span", { style: { left: percent(one.at) } }, one.text))), make("span", { class: "number" }));
const breakable = (name) => name.split("_").flatMap((part, index) => (index ? ["_", make("wbr"), part] : [part]));
const MARK = { best: "★ ", tied: "tied " };
const bar = (name, drawn, value, under, mark) => make("div", { class: `bar ${mark || ""}` }, make("span", { class: "name" }, ...breakable(name)), drawn, make("span", { class: "number" }, MARK[mark] || "", value, ...(under ? [" ", make("small", {}, under)] : [])));
const DRAWN = {
  intervals: ({ ticks, rows }) => [
    axis(ticks),
    ...rows.map(({ name, mark, places: [low, at, high], value, range }) =>
      bar(name, make("span", { class: "track", "aria-hidden": "true" }, ...ticks.map((one) => make("i", { class: "tick", style: { left: percent(one.at) } })), make("i", { class: "band", style: { left: percent(low), width: percent(high - low) } }), make("i", { class: "dot", style: { left: percent(at) } })), value, range && `(${range})`, mark),
    ),
  ],
  parts: ({ keys, names, rows }) => [
    make("ul", { class: "key" }, ...names.map((name, index) => make("li", {}, make("i", { style: { background: `var(--part-${keys[index]})` } }), name))),
    ...rows.map(({ name, shares, texts, value }) =>
      bar(name, make("span", { class: "stack", role: "img", "aria-label": names.map((one, index) => `${one} ${texts[index]}`).join(", ") }, ...shares.map((share, index) => make("i", { title: `${names[index]}: ${texts[index]}`, style: { width: percent(share), background: `var(--part-${keys[index]})` } }))), value),
    ),
  ],
  front: ({ x, y, points, legend }) => {
    const W = innerWidth < 640 ? 360 : 720, H = 330, at = (one) => 50 + (W - 70) * one, up = (one) => H - 40 - (H - 60) * one;
    const front = points.filter((one) => one.is_front).map((one) => `${at(one.x)},${up(one.y)}`);
    const label = (one) => {
      const isLeft = at(one.x) > W * 0.6;
      return draw("text", { class: "label", x: at(one.x) + (isLeft ? -9 : 9), y: up(one.y) + 4, "text-anchor": isLeft ? "end" : "start" }, one.name);
    };
    return [
      make("figure", {}, draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": points.map((one) => one.text).join(". ") },
        ...x.flatMap((one) => [draw("line", { class: "grid", x1: at(one.at), x2: at(one.at), y1: 20, y2: H - 40 }), draw("text", { x: at(one.at), y: H - 24, "text-anchor": "middle" }, one.text)]),
        ...y.flatMap((one) => [draw("line", { class: "grid", x1: 50, x2: W - 20, y1: up(one.at), y2: up(one.at) }), draw("text", { x: 46, y: up(one.at) + 4, "text-anchor": "end" }, one.text)]),
        draw("text", { x: W - 20, y: H - 6, "text-anchor": "end" }, "latency →"), draw("text", { x: 4, y: 14 }, "↑ energy"),
        draw("polyline", { class: "line", points: front.join(" ") }),
        ...points.map((one) => draw("circle", { class: one.is_likely ? "front likely" : one.is_front ? "front" : "point", cx: at(one.x), cy: up(one.y), r: 5 }, draw("title", {}, one.text))),
        ...points.map(label))),
      make("p", { class: "soft" }, legend),
    ];
  },
  waterfall: ({ ends, steps }) => {
    const step = (one, kind) => make("span", { class: "track", "aria-hidden": "true" }, make("i", { class: `step ${kind}`, style: { left: percent(Math.min(one.from, one.to)), width: percent(Math.abs(one.to - one.from)) } }));
    return [
      bar(ends[0].name, step(ends[0], ""), ends[0].value),
      ...steps.map((one) => bar(one.name, step(one, one.to > one.from ? "worse" : "better"), one.value, `${one.sides[0]} → ${one.sides[1]}`)),
      bar(ends[1].name, step(ends[1], ""), ends[1].value),
    ];
  },
};

async function offer() {
  const choices = await (await fetch("choices.json")).json();
  find("chips").append(...choices.chips.map(([id, name]) => make("option", { value: id }, name)));
  find("models").append(...choices.models.map((name) => make("option", { value: name })));
  for (const [name, key] of [["precision", "precisions"], ["runtime", "runtimes"], ["weights", "weights"]]) {
    fields[name].replaceChildren(...choices[key].map((one) => new Option(one)));
  }
  fill();
}
show();
begin();
offer().catch(() => {});
