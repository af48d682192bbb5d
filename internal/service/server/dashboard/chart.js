/* global uPlot */
// Lines over time, by uPlot, which index.html loads. The legend has the values in words: the last ones, or those under the pointer.

import { clockText, el } from "./dom.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const height = 180;

// chart draws series of {label, key, format} from columns {at, key...} on one scale, which reaches at least to least.
export function chart(title, least, series) {
  const box = el("div", { class: "chart", role: "img", "aria-label": title });
  const text = el("p", { class: "legend" });
  let plot = null;
  let columns = { at: [] };

  const data = () => [columns.at, ...series.map(({ key }) => columns[key] ?? [])];
  const size = () => ({ width: Math.max(200, box.clientWidth), height });
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false } };
  const options = () => ({
    ...size(), cursor: { drag: { x: false }, y: false, points: { size: 6 } }, legend: { show: false }, padding: [8, 28, 0, 0],
    tzDate: (at) => uPlot.tzDate(new Date(1000 * at), "Etc/UTC"),
    hooks: { setCursor: [(u) => tell(u.cursor.idx)] },
    axes: [
      { ...axis, space: 70, size: 26, values: (_, ticks) => ticks.map((t) => clockText(new Date(1000 * t)).slice(0, ticks[1] - ticks[0] < 60 ? 8 : 5)) },
      { ...axis, scale: "y", size: 58, values: (_, ticks) => ticks.map(series[0].format) },
    ],
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(least, most * 1.1)] } },
    series: [{}, ...series.map((s, i) => ({ label: s.label, scale: "y", stroke: colour(`--series-${i + 1}`), width: 2, points: { show: false } }))],
  });
  const draw = () => {
    if (!box.isConnected || !box.clientWidth || columns.at.length < 2) return;
    plot?.destroy();
    Object.assign(axis, { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 } });
    plot = new uPlot(options(), data(), box);
  };
  const tell = (index) => {
    const at = index ?? columns.at.length - 1;
    if (at < 0) return;
    const value = (s) => columns[s.key]?.[at];
    text.replaceChildren(...series.map((s, i) => el("span", { class: `series-${i + 1}` }, `${s.label} ${value(s) === null || value(s) === undefined ? "–" : s.format(value(s))}`)),
      index === null || index === undefined ? "" : el("time", {}, clockText(new Date(1000 * columns.at[at]))));
  };
  const redraw = () => {
    if (plot) plot.setData(data());
    else draw();
    tell(plot?.cursor.idx);
  };
  new ResizeObserver(() => (plot ? plot.setSize(size()) : draw())).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  return {
    node: el("div", {}, box, text),
    set(all) {
      columns = all;
      redraw();
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
      redraw();
    },
  };
}
