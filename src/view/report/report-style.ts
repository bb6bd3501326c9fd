/** Defines the report's style sheet; the charts have their own. */
export const REPORT_STYLE = `* { box-sizing: border-box; }
html { background: var(--ground); }
body { margin: 0 auto; max-width: 828px; padding: 3rem 1.5rem 4rem; background: var(--ground); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 0.75rem; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.75rem 0 0.25rem; }
p { margin: 0.35rem 0 0.75rem; max-width: 42rem; }
.lead { font-size: 1.05rem; }
.figures { display: flex; flex-wrap: wrap; gap: 0; margin: 1.5rem 0 0.5rem; padding: 0; border: solid var(--line); border-width: 1px 0; }
.figures div { flex: 1 1 8rem; padding: 0.8rem 1rem 0.8rem 0; }
.figures dt { color: var(--faint); font-size: 0.8rem; }
.figures dd { margin: 0; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; letter-spacing: -0.01em; }
figure { margin: 1rem 0 0.5rem; }
figcaption { color: var(--faint); font-size: 0.85rem; margin-top: 0.4rem; max-width: 42rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: min(100%, 26rem); margin: 0.9rem 0 0; font-size: 0.83rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); font-size: 0.85rem; padding-bottom: 0.3rem; }
th { font-weight: 600; color: var(--faint); vertical-align: bottom; }
th, td { text-align: left; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
td.number, th.number { text-align: right; }
td.wrap { white-space: normal; min-width: 14rem; }
.refused { color: var(--bad); }
ul { padding-left: 1.1rem; margin: 0.3rem 0 0.75rem; }
summary { color: var(--faint); font-size: 0.85rem; cursor: pointer; margin-top: 0.75rem; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 4px; padding: 0.6rem 0.8rem; overflow-x: auto; }
pre code { overflow-wrap: normal; }
code { font: 0.85em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
footer { margin-top: 3rem; padding-top: 0.75rem; border-top: 1px solid var(--line); color: var(--faint); font-size: 0.85rem; }
@page { margin: 16mm 14mm; }
@media print {
  body { padding: 0; max-width: none; font-size: 10.5pt; }
  figure, table, .figures { break-inside: avoid; }
  h2 { break-after: avoid; margin-top: 1.6rem; }
  .scroll { overflow: visible; }
  summary { display: none; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
`;
