import { HoldfastError } from "@holdfast/common/errors.ts";
import { page } from "@holdfast/gateway/docs/page.ts";
import { type Exchange, send, sendProblem } from "@holdfast/gateway/exchange.ts";
import type { Mount } from "@holdfast/gateway/mounts.ts";
import { type ChannelConfirmations, type ConfirmationLink, confirmationPath } from "./channel-confirmation.ts";

/** Headers that forbid external content, scripts and other form targets, and keep the link out of referrers. */
const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
};

/** The page of a confirmation link: GET renders it without a change, and its button (POST) confirms. */
export function createConfirmationPage(confirmations: ChannelConfirmations, baseUrl: string): Mount {
  return {
    name: "channel-confirmation",
    prefix: confirmationPath,
    accepts: ({ path }) => path === confirmationPath,
    async handle(exchange) {
      const { method } = exchange.request;
      const link = linkOf(exchange);
      if (method === "GET" || method === "HEAD") {
        if (link === undefined || !confirmations.isValid(link)) return show(exchange, 404, "No such link", stale);
        return show(exchange, 200, "Alerts by mail", question);
      }
      if (method !== "POST")
        throw new HoldfastError("METHOD_NOT_ALLOWED", "GET shows the page and POST confirms.", {
          allow: ["GET", "HEAD", "POST"],
        });
      const { source, requestId } = exchange;
      const isConfirmed = link !== undefined && (await confirmations.accept(link, { source, requestId }));
      if (isConfirmed) return show(exchange, 200, "Confirmed", "<p>Alerts are sent to this address from now on.</p>");
      return show(exchange, 404, "No such link", stale);
    },
    fail: (exchange, error) => sendProblem(exchange, error, baseUrl),
  };
}

/** A form without an action posts to its own URL, which includes the token. */
const question =
  '<p>Shall alerts of this installation be sent to your address?</p><form method="post"><button>Send me alerts</button></form>';
const stale =
  "<p>The link was used already, is older than 72 hours, or a newer one was sent. Ask the owner of the channel for another one.</p>";

function show(exchange: Exchange, status: number, title: string, body: string): void {
  send(exchange, status, headers, page(title, body));
}

function linkOf({ query }: Exchange): ConfirmationLink | undefined {
  const parameters = new URLSearchParams(query);
  const channelId = parameters.get("channel") ?? "";
  const token = parameters.get("token") ?? "";
  const isWellFormed = /^[0-9a-f-]{36}$/.test(channelId) && /^[A-Za-z0-9_-]{43}$/.test(token);
  return isWellFormed ? { channelId, token } : undefined;
}
