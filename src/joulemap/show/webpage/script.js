"use strict";
(async () => {
  const started = performance.now();
  const page = document.documentElement;
  if (!("DecompressionStream" in window)) return;

  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const link = document.getElementById("content");
  const [content, vega] = await Promise.all([
    unpack(link.href.slice(link.href.indexOf(",") + 1)).then(JSON.parse),
    unpack(document.getElementById("vega").textContent),
  ]);
  const code = document.createElement("script");
  code.textContent = vega;
  document.head.append(code);
  if (!window.vegaEmbed) return;

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const rowsOf = (table, names) => {
    const columns = names.map((name) => table.columns.find((column) => column.name === name).values);
    const row = (place) => Object.fromEntries(names.map((name, index) => [name, columns[index][place]]));
    return Array.from({ length: table.row_count }, (_none, place) => row(place));
  };

  const NARROW = 560;
  const LEAST = 80;
  const LEAST_SHARE = 0.35;
  const WIDE = 760;
  const MARGIN = 130;
  const isNumber = (value) => typeof value === "number";
  const parts = (view) => view.hconcat || view.vconcat || (view.spec ? [view.spec] : []);
  const stack = (view) => {
    if (!view.hconcat) return view;
    const { hconcat, ...rest } = view;
    const widest = Math.max(...hconcat.map(widths));
    for (const one of hconcat) if (isNumber(one.width)) one.width = widest;
    for (const one of hconcat) for (const axis of axes(one)) if (axis.labels === false) Object.assign(axis, { labels: true, ticks: true });
    return { ...rest, vconcat: hconcat };
  };
  const axes = (view) => {
    const own = [view, ...(view.layer || [])].map((one) => one.encoding && one.encoding.y && one.encoding.y.axis);
    return own.filter(Boolean);
  };
  const scale = (view, factor) => {
    if (isNumber(view.width)) view.width = Math.max(view.width * factor, LEAST);
    parts(view).forEach((one) => scale(one, factor));
  };
  const widths = (view) => {
    if (view.hconcat) return view.hconcat.map(widths).reduce((sum, one) => sum + one, 0);
    if (view.vconcat) return Math.max(...view.vconcat.map(widths));
    if (view.spec) return widths(view.spec) * (view.columns || 1);
    return isNumber(view.width) ? view.width : 0;
  };
  const each = (value, change) => {
    if (value === null || typeof value !== "object") return;
    change(value);
    Object.values(value).forEach((one) => each(one, change));
  };
  const narrow = ({ legend, axis, ...config }, width) => ({
    ...config,
    axis: { ...axis, labelLimit: width * 0.3 },
    legend: {
      ...legend,
      columns: 2,
      gradientLength: width * 0.5,
      labelLimit: width * 0.38,
      layout: { bottom: { direction: "vertical" } },
    },
  });
  const fold = (text, width) => {
    const lines = [""];
    for (const word of String(text).split(" ")) {
      const last = lines[lines.length - 1];
      if (last && (last.length + word.length) * 6.2 > width) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines;
  };

  const specify = (figure, changed) => {
    const view = structuredClone(content.specifications[figure.specification]);
    view.title = { ...figure.title, ...(changed.title ? { subtitle: changed.title } : {}) };
    view.description = figure.description;
    view.datasets = { ...view.datasets, rows: changed.rows || rowsOf(content.tables[figure.table], figure.columns) };
    return view;
  };

  const drawn = new Map();
  const draw = async (frame, changed = {}) => {
    const figure = content.figures[frame.id];
    const live = frame.querySelector(".live");
    const width = frame.clientWidth;
    let view = specify(figure, changed);
    let config = content.themes[dark.matches ? "dark" : "light"];
    if (width < NARROW) {
      config = narrow(config, width);
      view = stack(view);
      each(view.vconcat || view.spec || [view.encoding, view.layer], ({ legend, axis }) => {
        if (legend) ["columns", "gradientLength", "labelLimit"].forEach((name) => delete legend[name]);
        if (axis) delete axis.labelLimit;
      });
    }
    view.title.subtitle = fold(view.title.subtitle, width);
    view.title.text = fold(view.title.text, width * 0.8);
    view.title.limit = width;
    const own = widths(view);
    const room = Math.max(width - MARGIN, width * LEAST_SHARE);
    if (own && (own > room || own < room * 0.85)) scale(view, Math.max(Math.min(room, WIDE) / own, LEAST / own));
    const options = {
      ast: true,
      actions: false,
      defaultStyle: false,
      renderer: "svg",
      mode: "vega-lite",
      logLevel: 0,
      tooltip: { disableDefaultStyle: true },
      config,
    };
    for (let attempt = 0; ; attempt += 1) {
      const holder = document.createElement("div");
      const result = await vegaEmbed(holder, view, options);
      const excess = parseFloat(holder.querySelector("svg").getAttribute("width")) - width;
      const now = widths(view);
      const least = Math.max(LEAST, width * LEAST_SHARE);
      if (attempt < 2 && now > least && excess > 1) {
        result.finalize();
        scale(view, Math.max((now - excess) / now, least / now));
        continue;
      }
      drawn.get(frame)?.result.finalize();
      live.replaceChildren(holder);
      drawn.set(frame, { result, width, changed });
      frame.dataset.live = "yes";
      frame.view = result.view;
      listen(frame, result);
      return;
    }
  };

  const listen = (frame, result) => {
    const trees = document.getElementById(frame.closest(".exhibit").dataset.opens || "");
    if (!trees) return;
    result.view.addEventListener("click", (_event, item) => {
      if (item && item.datum) look(trees, item.datum);
    });
  };

  const look = (trees, datum) => {
    const values = Object.values(datum);
    const branch = [...trees.querySelectorAll(":scope > details")].find((one) => values.includes(one.dataset.key));
    if (!branch) return;
    branch.open = true;
    for (const inner of branch.querySelectorAll(":scope > details")) inner.open = values.includes(inner.dataset.key);
    (branch.querySelector(":scope > details[open]") || branch).scrollIntoView({ block: "nearest" });
  };

  const guarded = async (frame, changed) => {
    try {
      await draw(frame, changed);
    } catch (error) {
      frame.dataset.failed = String(error);
    }
  };

  for (const exhibit of document.querySelectorAll(".exhibit[data-chooses]")) {
    const frames = [...exhibit.querySelectorAll(":scope > figure")];
    const label = document.createElement("label");
    const select = document.createElement("select");
    label.append(`${exhibit.dataset.chooses}: `, select);
    label.className = "switch";
    frames.forEach((frame, index) => select.add(new Option(frame.dataset.label, String(index))));
    const show = () => {
      frames.forEach((frame, index) => { frame.hidden = index !== Number(select.value); });
      const chosen = frames[Number(select.value)];
      if (!drawn.has(chosen)) guarded(chosen);
    };
    select.addEventListener("change", show);
    frames.forEach((frame, index) => { frame.hidden = index !== 0; });
    exhibit.prepend(label);
  }

  for (const frame of document.querySelectorAll(".exhibit > figure:not([hidden])")) {
    await guarded(frame);
    await new Promise((done) => setTimeout(done, 0));
  }
  page.dataset.drawn = String(Math.round(performance.now() - started));
  page.dataset.ready = String(Math.round(performance.now()));

  const again = async () => {
    for (const [frame, { changed }] of drawn) if (!frame.hidden) await guarded(frame, changed);
    else { drawn.get(frame).result.finalize(); drawn.delete(frame); }
  };
  dark.addEventListener("change", again);
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const changed = [...drawn].some(([frame, { width }]) => !frame.hidden && Math.abs(frame.clientWidth - width) > 8);
      if (changed) again();
    }, 200);
  });
})();
