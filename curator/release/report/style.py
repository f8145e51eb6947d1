"""The page's only style sheet: light and dark, from a phone to paper. It names no font or address of anybody else's."""

STYLE = """
:root{color-scheme:light dark;--paper:#fcfbf8;--card:#fff;--ink:#1c2328;--soft:#525c64;--rule:#dcd9d0;--bar:#3d7d9c;
--stroke:#1c2328;--lane:#f1efe8;--accent:#8a3b12;--faint:#9fb9c6;--less:#c46a2b}
@media (prefers-color-scheme:dark){:root{--paper:#14181b;--card:#1b2125;--ink:#e8eaeb;--soft:#a9b4bb;--rule:#343c42;
--bar:#3f86a6;--stroke:#f4f5f5;--lane:#1d2428;--accent:#f0a878;--faint:#2c5a70;--less:#c97a45}}
*{box-sizing:border-box}
html{font:100%/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;
-webkit-text-size-adjust:100%;text-size-adjust:100%;background:var(--paper);color:var(--ink)}
body{margin:0 auto;max-width:68rem;padding:clamp(1.25rem,4vw,3.5rem) clamp(1rem,4vw,2.5rem) 4rem;
overflow-wrap:break-word}
bdi,a{overflow-wrap:anywhere}
h1,h2{font-family:ui-serif,Georgia,"Noto Serif","Liberation Serif",serif;font-weight:600;line-height:1.2;
text-wrap:balance}
h1{font-size:clamp(2.1rem,6vw,3.2rem);margin:.1em 0 .35em;letter-spacing:-.015em}
h2{font-size:1.6rem;margin:0 0 .6rem;letter-spacing:-.01em}
h3{font-size:1rem;margin:0}
p,ul,ol{max-width:44rem;margin:.6rem 0}
li{margin:.35rem 0}
a{color:var(--accent);text-underline-offset:.18em}
.kind{color:var(--soft);margin:0}
.lead{font-size:1.15rem;line-height:1.55}
section{margin-top:3.25rem;padding-top:1.6rem;border-top:1px solid var(--rule)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,11.5rem),1fr));gap:1px;
margin:1.75rem 0 1.25rem;
background:var(--rule);border:1px solid var(--rule);border-radius:.6rem;overflow:hidden}
.tiles div{background:var(--card);padding:.9rem 1.1rem 1rem}
.tiles dt{color:var(--soft);font-size:.875rem}
.tiles dd{margin:0}
.tiles dd.figure{font:600 1.5rem/1.3 ui-serif,Georgia,"Noto Serif","Liberation Serif",serif}
.tiles dd.note{font-size:.875rem;color:var(--soft);line-height:1.45}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;padding:0;list-style:none;max-width:none;font-size:.9375rem}
nav li{margin:0}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1.25rem;margin:1rem 0}
.facts dt{color:var(--soft)}
.facts dd{margin:0;min-width:0}
code,pre,.key{font-family:ui-monospace,"Cascadia Mono",Menlo,"Noto Sans Mono","Liberation Mono",monospace;
font-size:.8125rem}
pre{background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:.8rem 1rem;white-space:pre-wrap;
overflow-wrap:anywhere;max-width:44rem;line-height:1.5}
.key{color:var(--soft);overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%}
.scroll+.scroll,.scroll+details{margin-top:1.4rem}
.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.9375rem;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .75rem .4rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);
font-weight:400}
thead th{color:var(--soft);font-size:.8125rem;vertical-align:bottom}
.number,.chart td,.chart th:nth-child(n+2){text-align:right;padding-right:0;padding-left:.75rem}
caption{text-align:left;font-weight:600;font-size:.9375rem;padding-bottom:.2rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.cards{columns:2 25rem;column-gap:1rem;margin-top:1.25rem}
.card{background:var(--card);border:1px solid var(--rule);border-radius:.6rem;padding:1rem 1.1rem;margin:0 0 1rem;
break-inside:avoid}
.card p{margin:.1rem 0 .5rem;color:var(--soft);font-size:.875rem}
.card p.part{color:var(--ink);margin-top:.9rem}
.chart{table-layout:fixed}
.chart td{width:5.2rem;font-size:.875rem;line-height:1.35}
.chart td:nth-child(3){width:8rem;white-space:nowrap}
.chart th:nth-child(2){width:5.2rem}
.chart th:nth-child(3){width:8rem}
.chart tbody tr{position:relative}
.chart tbody th,.chart tbody td{padding-top:.35rem;padding-bottom:1.35rem}
.chart td,.chart tbody th{border-bottom:0}
.chart small{display:block;white-space:normal;color:var(--soft);font-size:.8125rem}
.label{display:block;font-size:.875rem;line-height:1.35}
.strip{display:block;width:100%;height:15px;overflow:visible}
.chart .strip{position:absolute;left:0;bottom:.3rem}
.outline{display:block;width:100%;height:92px}
.axes{display:grid;grid-template-columns:max-content 1fr;gap:.2rem .5rem;margin:.4rem 0 .6rem}
.axes .shares{display:flex;flex-direction:column;justify-content:space-between;text-align:right;color:var(--soft);
font-size:.75rem;line-height:1}
.axes .ends{grid-column:2}
.off{color:var(--accent);font-style:normal;font-weight:600;font-size:.8125rem;white-space:nowrap}
.files,.lists{max-width:none;display:grid;column-gap:2.5rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
.lists ul{padding-left:1.2rem}
.files{row-gap:.3rem}
.files li{margin:0}
.rows td,.rows th,.rows bdi{white-space:nowrap;overflow-wrap:normal}
.map{display:block;width:100%;height:auto}
.map text{font-size:11px;fill:var(--ink)}
.map rect,.swatch rect{stroke:none}
.swatch{width:1.4rem!important;height:1.4rem}
.none{fill:var(--lane)}
.unknown{fill:none;stroke:var(--rule)!important}
.framed{stroke:var(--accent)!important;stroke-width:2.5}
.more1{fill:color-mix(in srgb,var(--bar) 20%,var(--lane))}.more2{fill:color-mix(in srgb,var(--bar) 40%,var(--lane))}
.more3{fill:color-mix(in srgb,var(--bar) 60%,var(--lane))}.more4{fill:color-mix(in srgb,var(--bar) 80%,var(--lane))}
.more5{fill:var(--bar)}
.less1{fill:color-mix(in srgb,var(--less) 20%,var(--lane))}.less2{fill:color-mix(in srgb,var(--less) 40%,var(--lane))}
.less3{fill:color-mix(in srgb,var(--less) 60%,var(--lane))}.less4{fill:color-mix(in srgb,var(--less) 80%,var(--lane))}
.less5{fill:var(--less)}
.ends{display:flex;justify-content:space-between;gap:1rem;color:var(--soft);font-size:.8125rem}
.ends *{overflow-wrap:normal}
.ends span:last-child{text-align:right}
.bar{fill:var(--bar)}
.faint{fill:var(--faint)}
.band,.stroke,.track{fill:none;stroke:var(--stroke);vector-effect:non-scaling-stroke}
.band{stroke-width:1.25}
.stroke{stroke-width:2.5}
.track{stroke:var(--rule);stroke-width:1}
.legend{display:flex;flex-wrap:wrap;gap:.35rem 1.75rem;padding:0;list-style:none;max-width:none;font-size:.9375rem}
.legend li{display:flex;align-items:center;gap:.6rem;margin:0}
.legend svg{width:4.5rem;flex:none}
.spent{display:flex;height:1.6rem;min-width:9rem;border:1px solid var(--stroke);border-radius:.25rem;overflow:hidden}
.spent span{border-right:1px solid var(--stroke);overflow:hidden;text-align:center;font-size:.8125rem;
line-height:1.5rem;background:var(--card)}
.spent span:last-child{border-right:0}
.spent .p0{background:var(--faint)}
.spent .p1{background:repeating-linear-gradient(45deg,var(--lane) 0 4px,var(--rule) 4px 6px)}
.spent .p2{background:var(--rule)}
.spent .p3{background:repeating-linear-gradient(90deg,var(--lane) 0 5px,var(--rule) 5px 6px)}
.spent b{background:var(--card);padding:0 .3em;border-radius:.2em;font-weight:600}
.letter{display:inline-block;min-width:1.5em;text-align:center;border:1px solid var(--stroke);border-radius:.25rem;
font-size:.8125rem;font-weight:600}
.network{display:block;width:100%;height:auto}
.network text{font-size:11px;fill:var(--ink)}
.network .lane{fill:var(--lane)}
.network .arrow path{fill:none;stroke:var(--soft);stroke-width:1;opacity:.62}
.network marker path{fill:var(--soft)}
.network .arrow:hover path{stroke:var(--accent);stroke-width:2.5;opacity:1}
.network .node circle{fill:var(--card);stroke:var(--ink);stroke-width:1.4}
.columns .arrow path{stroke:var(--bar);opacity:.7}
.columns circle{fill:var(--ink)}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--accent);font-size:.9375rem;padding:.25rem 0}
strong.figure{font:600 1.6rem/1.3 ui-serif,Georgia,"Noto Serif","Liberation Serif",serif}
blockquote{margin:.8rem 0;padding:.2rem 0 .2rem 1rem;border-left:3px solid var(--rule);max-width:44rem}
footer{margin-top:3.5rem;padding-top:1.2rem;border-top:1px solid var(--rule);color:var(--soft);font-size:.875rem}
@media (max-width:32rem){.facts{grid-template-columns:1fr;gap:.1rem}.facts dd{margin-bottom:.55rem}
.chart td,.chart th:nth-child(2){width:4.3rem}.chart thead th{font-size:.75rem}
.chart td:nth-child(3),.chart th:nth-child(3){width:6.8rem}.chart td{font-size:.8125rem}.card{padding:.85rem .9rem}
.tiles{grid-template-columns:1fr 1fr}.tiles div:last-child{grid-column:1/-1}
.tiles div{padding:.7rem .8rem}.tiles dd.figure{font-size:1.4rem}}
@media print{:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#333;--rule:#999;--stroke:#000;--bar:#888;
--lane:#f4f4f4;--accent:#000;--faint:#ccc}
body{max-width:none;padding:0}nav{display:none}section{break-inside:auto}
details::details-content{content-visibility:visible;block-size:auto}.scroll{overflow:visible}}
"""
