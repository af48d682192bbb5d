/* global uPlot */
// Lines over time, by uPlot, which index.html loads. Each chart also has a text that says its last values, for those who cannot see it.

import { el } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// chart draws series of {label, key, format} from columns {at, key...} on one scale. Its legend has the last values.
export function chart(title, series) {
  const box = el("div", { class: "chart", role: "img", "aria-label": title });
  const text = el("p", { class: "legend" });
  let plot = null;
  let columns = { at: [] };

  const data = () => [columns.at, ...series.map(({ key }) => columns[key] ?? [])];
  const options = () => ({
    width: Math.max(200, box.clientWidth), height: 200, cursor: { drag: { x: false } },
    legend: { show: false },
    axes: [
      { stroke: colour("--quiet"), grid: { stroke: colour("--grid") }, values: (_, ticks) => ticks.map((t) => new Date(1000 * t).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })) },
      { scale: "y", size: 62, stroke: colour("--quiet"), grid: { stroke: colour("--grid") }, values: (_, ticks) => ticks.map((v) => series[0].format(v)) },
    ],
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    series: [{}, ...series.map((s, i) => ({
      label: s.label, scale: "y", stroke: colour(`--series-${i + 1}`), width: 2, points: { show: false },
      value: (_, v) => (v === null || v === undefined ? "–" : s.format(v)),
    }))],
  });
  const draw = () => {
    if (!box.isConnected || !box.clientWidth || columns.at.length < 2) return;
    plot?.destroy();
    plot = new uPlot(options(), data(), box);
  };
  const tell = () => {
    const last = columns.at.length - 1;
    if (last >= 0) text.replaceChildren(...series.map((s, i) => el("span", { class: `series-${i + 1}` }, `${s.label} ${s.format(columns[s.key]?.[last] ?? 0)}`)));
  };
  new ResizeObserver(() => (plot ? plot.setSize({ width: Math.max(200, box.clientWidth), height: 200 }) : draw())).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  return {
    node: el("div", {}, box, text),
    set(all) {
      columns = all;
      if (plot) plot.setData(data());
      else draw();
      tell();
    },
    // add appends a point and forgets those older than so many seconds.
    add(point, seconds) {
      if (columns.at.length && point.at <= columns.at.at(-1)) return;
      columns.at.push(point.at);
      for (const { key } of series) (columns[key] ??= []).push(point[key] ?? null);
      while (columns.at[0] < point.at - seconds) {
        columns.at.shift();
        for (const { key } of series) columns[key].shift();
      }
      if (plot) plot.setData(data());
      else draw();
      tell();
    },
  };
}
