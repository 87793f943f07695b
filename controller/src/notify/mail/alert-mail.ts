import { lookUp } from "@holdfast/common/look-up.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import { mailBody, type MailBody } from "./mail-body.ts";
import type { Mail } from "./mailer.ts";

type TheEvent = Pick<EventEntry, "id" | "occurredAt" | "type" | "data">;
type Letter = Omit<Mail, "to">;

/** Alerts that a digest shows; of more it tells the number. */
export const digestLines = 100;

/** Pure: the mail that an event of a channel is told in. */
export function alertMail(event: TheEvent, baseUrl: string): Letter {
  const end = `Sent by Holdfast at ${baseUrl}.`;
  if (event.type === "channel.test") {
    const body = mailBody("This is a test of your alert channel.", [], end);
    return { id: event.id, subject: "[Holdfast] test of your alert channel", ...body };
  }
  const { data } = event;
  const title = titleOf(event);
  const of = (name: string) => wordOf(lookUp(data, name));
  const isOver = of("state") === "resolved";
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
        ...(isOver ? ([["Resolved", `${of("resolved_at")} (${of("reason")})`]] as const) : []),
        ["Alert", of("id")],
      ],
      end,
    ),
  };
}

/** Pure: one mail for many alerts, the oldest first; `total` counts those too that have no room. */
export function digestMail(events: readonly TheEvent[], total: number, baseUrl: string): Letter {
  const shown = events.slice(0, digestLines);
  const rows = shown.map((event) => [new Date(event.occurredAt).toISOString(), titleOf(event)] as const);
  const more = total > shown.length ? `${total - shown.length} more are not shown. ` : "";
  const end = `${more}Over 20 alerts came in a minute, so they are told in one mail. \`holdfast alerts firing\` lists what fires now. Sent by Holdfast at ${baseUrl}.`;
  const body: MailBody = mailBody(`${total} alerts`, rows, end);
  return { id: `digest-${events[0]?.id ?? "empty"}`, subject: `[Holdfast] ${total} alerts`, ...body };
}

/** "orders: disk gt 80 (critical) is firing at 93.2". */
function titleOf({ type, data }: TheEvent): string {
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
