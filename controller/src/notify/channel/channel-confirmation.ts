import { randomBytes } from "node:crypto";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { page } from "@holdfast/gateway/docs/page.ts";
import { type Exchange, send, sendProblem } from "@holdfast/gateway/exchange.ts";
import type { Mount } from "@holdfast/gateway/mounts.ts";
import { equalHash } from "#access/equal-hash.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { channelKind, type ChannelObject, type ChannelStatus } from "./channel.ts";

/** Confirmation links by which holders of addresses agree to get alerts. */
export interface ChannelConfirmations {
  /**
   * Creates a link for the channel's address and voids the previous one. Undefined if the address needs no
   * confirmation.
   */
  begin(channelId: string, signal: AbortSignal): Promise<string | undefined>;
  /** True if the link is valid. Changes nothing, because programs that scan mails follow links too. */
  isValid(link: ConfirmationLink): boolean;
  /** Confirms the address, once; false for a link that is not valid any more. */
  accept(link: ConfirmationLink, from: { readonly source: string; readonly requestId: string }): Promise<boolean>;
}

export interface ConfirmationLink {
  readonly channelId: string;
  readonly token: string;
}

const confirmationPath = "/channel-confirmation";

const linkLifetimeMs = 72 * 3_600_000;
const acceptTimeoutMs = 10_000;
const hashPurpose = "channel-confirmation";

export function createChannelConfirmations(deps: {
  readonly channels: Collection<ChannelObject>;
  readonly begin: () => UnitOfWork;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** URL at which clients reach the platform. */
  readonly baseUrl: string;
}): ChannelConfirmations {
  const { channels, sealer, clock, baseUrl } = deps;

  /** The hash covers the channel's id, so that the token is valid for this channel only. */
  const hashOf = ({ channelId, token }: ConfirmationLink) => sealer.keyedHash(hashPurpose, `${channelId} ${token}`);

  function channelOf(link: ConfirmationLink): Stored<ChannelObject> | undefined {
    const channel = channels.get(link.channelId);
    const confirmation = channel?.object.status.confirmation ?? undefined;
    const isSame = equalHash(confirmation?.tokenHash, hashOf(link));
    return isSame && confirmation !== undefined && confirmation.expiresAt > clock.now() ? channel : undefined;
  }

  function withStatus({ metadata, spec }: ChannelObject, status: ChannelStatus): ChannelObject {
    return { metadata: nextMetadata(metadata, clock.now()), spec, status };
  }

  return {
    begin: (channelId, signal) =>
      retryConflict(signal, async () => {
        const before = channels.get(channelId);
        if (before?.object.spec.type !== "email" || before.object.status.confirmedAt !== null) return undefined;
        const token = randomBytes(32).toString("base64url");
        const confirmation = { tokenHash: hashOf({ channelId, token }), expiresAt: clock.now() + linkLifetimeMs };
        const unit = deps.begin();
        unit.update(channelKind, before, withStatus(before.object, { confirmedAt: null, confirmation }));
        await channels.untilRevision(await unit.commit(signal), 1_000);
        return `${baseUrl}${confirmationPath}?channel=${channelId}&token=${token}`;
      }),

    isValid: (link) => channelOf(link) !== undefined,

    accept: (link, { source, requestId }) =>
      retryConflict(AbortSignal.timeout(acceptTimeoutMs), async () => {
        const before = channelOf(link);
        if (before === undefined) return false;
        const { id, organizationId } = before.object.metadata;
        const unit = deps.begin();
        unit.update(channelKind, before, withStatus(before.object, { confirmedAt: clock.now(), confirmation: null }));
        const caller = { organizationId, actor: "link", source, requestId };
        unit.audit({ ...caller, action: "channel.confirm", objectKind: "channel", objectId: id, result: "ok" });
        await channels.untilRevision(await unit.commit(), 1_000);
        return true;
      }),
  };
}

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
