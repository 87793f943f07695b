import { lookUp } from "@holdfast/common/look-up.ts";
import { escape } from "@holdfast/gateway/docs/page.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import type { Mail } from "./mailer.ts";

type MailEvent = Pick<EventEntry, "id" | "occurredAt" | "type" | "data">;
type MailMessage = Omit<Mail, "to">;

/** Maximum number of alerts that a digest lists; of the others it has only the number. */
export const digestLines = 100;

/** The mail of one event of a channel. */
export function alertMail(event: MailEvent, baseUrl: string): MailMessage {
  const end = `Sent by Holdfast at ${baseUrl}.`;
  if (event.type === "channel.test") {
    const body = mailBody("This is a test of your alert channel.", [], end);
    return { id: event.id, subject: "[Holdfast] test of your alert channel", ...body };
  }
  const { data } = event;
  const title = titleOf(event);
  const of = (name: string) => wordOf(lookUp(data, name));
  const isFinished = of("state") === "resolved";
  return {
    id: event.id,
    thread: of("id"),
    subject: `[Holdfast] ${title}`,
    ...mailBody(
      `${title}.`,
      [
        ["Service", of("service_name")],
        ["Rule", of("alert_name")],
        ["Severity", of("severity")],
        ["Condition", `${of("metric")} ${of("condition")} ${of("threshold")}`],
        ["Value", of("current_value")],
        ["Node", of("node_id")],
        ["Since", of("since")],
        ["Fired", of("fired_at")],
        ...(isFinished ? ([["Resolved", `${of("resolved_at")} (${of("reason")})`]] as const) : []),
        ["Alert", of("id")],
      ],
      end,
    ),
  };
}

/** One mail for many alerts, the oldest first. `total` includes alerts that the mail does not list. */
export function digestMail(events: readonly MailEvent[], total: number, baseUrl: string): MailMessage {
  const listed = events.slice(0, digestLines);
  const rows = listed.map((event) => [new Date(event.occurredAt).toISOString(), titleOf(event)] as const);
  const more = total > listed.length ? `${total - listed.length} more are not listed. ` : "";
  const end = `${more}More than 20 alerts came within a minute, so they are in one mail. \`holdfast alerts firing\` lists the alerts that fire now. Sent by Holdfast at ${baseUrl}.`;
  const body: MailBody = mailBody(`${total} alerts`, rows, end);
  return { id: `digest-${events[0]?.id ?? "empty"}`, subject: `[Holdfast] ${total} alerts`, ...body };
}

/** One line of text, such as `orders: disk gt 80 (critical) is firing at 93.2`. */
function titleOf({ type, data }: MailEvent): string {
  if (type === "channel.test") return "a test of your alert channel";
  const state = wordOf(data["state"]);
  const value = data["current_value"];
  const at = typeof value === "number" && state === "firing" ? ` at ${value}` : "";
  const word = state === "no_data" ? "has no data" : `is ${state}${at}`;
  return `${wordOf(data["service_name"])}: ${wordOf(data["alert_name"])} (${wordOf(data["severity"])}) ${word}`;
}

function wordOf(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "none";
}

/**
 * The mail with the confirmation link. It contains no text of the requester, because its receiver has not agreed to
 * get mail.
 */
export function confirmationMail(
  url: string,
  { baseUrl, id }: { readonly baseUrl: string; readonly id: string },
): Omit<Mail, "to"> {
  const lead = `Somebody wants alerts of the Holdfast installation at ${baseUrl} to be sent to this address.`;
  const end = "The link is valid for 72 hours and works once. If you do not want this, do nothing: no alert is sent.";
  return {
    id,
    subject: "[Holdfast] Confirm your address for alerts",
    text: [lead, "", "To agree, open this page and confirm there:", "", url, "", end, ""].join("\n"),
    html: [
      '<!doctype html><html lang="en"><body style="font-family:sans-serif">',
      `<p>${escape(lead)}</p><p>To agree, <a href="${escape(url)}">open this page</a> and confirm there.</p>`,
      `<p style="color:#555">${escape(end)}</p></body></html>`,
    ].join("\n"),
  };
}

/** The body of a mail as plain text and as HTML. */
interface MailBody {
  readonly text: string;
  readonly html: string;
}

/** A row of a table: name and value. */
type MailRow = readonly [name: string, value: string];

/** A body of a first sentence, a table and a last line. All arguments are plain text, which is escaped in the HTML. */
function mailBody(lead: string, rows: readonly MailRow[], end: string): MailBody {
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
