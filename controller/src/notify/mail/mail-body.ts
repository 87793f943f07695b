import { escape } from "@holdfast/gateway/docs/page.ts";

/** A mail in its two forms: what programs without HTML show, and what all others do. */
export interface MailBody {
  readonly text: string;
  readonly html: string;
}

/** A line of a table: what it is, and its value. */
export type MailRow = readonly [name: string, value: string];

/** A sentence on top, then rows, then a line at the end. All of it is text: nothing of it is taken for HTML. */
export function mailBody(lead: string, rows: readonly MailRow[], end: string): MailBody {
  const width = Math.max(0, ...rows.map(([name]) => name.length)) + 2;
  const lines = rows.map(([name, value]) => `${`${name}:`.padEnd(width)}${oneLine(value)}`);
  const cells = rows.map(
    ([name, value]) =>
      `<tr><td style="padding:2px 12px 2px 0;color:#555">${escape(name)}</td><td>${escape(oneLine(value))}</td></tr>`,
  );
  return {
    text: [oneLine(lead), "", ...lines, "", end, ""].join("\n"),
    html: [
      '<!doctype html><html lang="en"><body style="font-family:sans-serif">',
      `<p><strong>${escape(oneLine(lead))}</strong></p><table>${cells.join("")}</table>`,
      `<p style="color:#555">${escape(end)}</p></body></html>`,
    ].join("\n"),
  };
}

function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ");
}
