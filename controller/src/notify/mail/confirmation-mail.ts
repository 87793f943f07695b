import { escape } from "@holdfast/gateway/docs/page.ts";
import type { Mail } from "./mailer.ts";

/** Pure: the mail with the link. It has no word of whoever asked for it: who gets it has not agreed to anything yet. */
export function confirmationMail(
  url: string,
  { baseUrl, id }: { readonly baseUrl: string; readonly id: string },
): Omit<Mail, "to"> {
  const lead = `Somebody wants alerts of the Holdfast installation at ${baseUrl} to be sent to this address.`;
  const end = "The link is good for 72 hours and works once. If you do not want this, do nothing: no alert is sent.";
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
