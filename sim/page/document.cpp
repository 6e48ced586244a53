#include "sim/page/document.h"

#include <fmt/format.h>

#include "sim/page/html.h"

namespace orrery {
namespace {

// The style sheet of a page, with sizes in CSS pixels and points. In print, text is smaller, sections that ask for it
// begin on a new sheet, and nothing that fits on one sheet is split over two.
constexpr std::string_view kStyle = R"(
:root { --ink: #20242c; --faint: #5b6270; --line: #d9dde3; --paper: #ffffff; --tint: #f4f6f9; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1060px; padding: 24px 28px 40px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 0 0 8px; padding-top: 14px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 16px 0 4px; }
p { margin: 4px 0; overflow-wrap: anywhere; }
p.in { padding-left: 22px; color: var(--faint); }
p.note, figcaption, footer { color: var(--faint); font-size: 13px; }
header { margin-bottom: 14px; }
header p { color: var(--faint); }
section { margin: 22px 0; }
figure { margin: 10px 0 14px; }
svg { display: block; width: 100%; height: auto; font-family: inherit; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(178px, 1fr)); gap: 12px; margin: 12px 0; }
.card { background: var(--tint); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; }
.card b { display: block; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { display: block; color: var(--faint); font-size: 13px; overflow-wrap: anywhere; }
.card span.of { color: var(--ink); font-weight: 600; }
.good { border-left: 5px solid #009e73; }
.bad { border-left: 5px solid #c0392b; }
.alarm { background: #fdecea; border: 1px solid #c0392b; border-radius: 6px; padding: 10px 14px; margin: 12px 0; }
.alarm b { color: #a02317; }
.wide { overflow-x: auto; margin: 8px 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--faint); font-weight: 600; vertical-align: bottom; }
th small { display: block; font-weight: 400; color: var(--faint); }
.n { text-align: right; white-space: nowrap; }
td.n:last-child, th.n:last-child { padding-right: 0; }
i.swatch { display: inline-block; width: 11px; height: 11px; margin-right: 7px; border-radius: 2px;
  border: 1px solid rgba(0, 0, 0, 0.25); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
ul.legend { display: flex; flex-wrap: wrap; gap: 3px 18px; list-style: none; margin: 6px 0 0; padding: 0; font-size: 13px; }
ol.levers { margin: 4px 0 4px; padding-left: 24px; }
ol.levers li { margin: 3px 0; overflow-wrap: anywhere; }
details { margin: 8px 0; }
summary { cursor: pointer; font-weight: 600; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; font-size: 12.5px;
  line-height: 1.4; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: 13px; overflow-wrap: anywhere; }
footer { border-top: 1px solid var(--line); margin-top: 26px; padding-top: 8px; }
@page { size: A4; margin: 14mm 13mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h1 { font-size: 17pt; }
  h2 { font-size: 13pt; break-after: avoid; }
  h3 { break-after: avoid; }
  section { margin: 10pt 0; }
  section.sheet { break-before: page; }
  section.sheet h2 { border-top: 0; padding-top: 0; }
  figure, .card, .alarm, tr, li { break-inside: avoid; }
  .cards { grid-template-columns: repeat(4, 1fr); gap: 6pt; }
  .card b { font-size: 14pt; }
  .card, .alarm, svg, pre { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .wide { overflow: visible; }
  table { font-size: 8pt; }
  thead { display: table-header-group; }
  th, td { padding-right: 7pt; }
  .wide table.dense { font-size: 6.8pt; }
  pre { font-size: 8pt; }
}
)";

std::string head_markup(const Page& page) {
  return fmt::format(
      "<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n",
      escaped(page.title), kStyle);
}

}  // namespace

std::string document(const Page& page) {
  std::string header = element("h1", escaped(page.title)) + '\n';
  for (const std::string& line : page.under) header += paragraph(line);
  std::string footer;
  if (!page.command.empty()) footer += element("p", element("code", escaped(page.command))) + '\n';
  footer += paragraph("made by " + page.version);
  return "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n" +
         element("head", '\n' + head_markup(page)) + "\n<body>\n" + element("header", '\n' + header) + '\n' +
         element("main", '\n' + page.body) + '\n' + element("footer", '\n' + footer) + "\n</body>\n</html>\n";
}

}  // namespace orrery
