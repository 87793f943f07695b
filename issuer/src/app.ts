import type { Log } from "@holdfast/common/log.ts";
import type { Egress } from "@holdfast/egress/create-egress.ts";
import type { AppSignIn, Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { DerivedKeys } from "./derived-keys.ts";
import type { TokenKeys } from "./protocol/token-keys.ts";
import type { MailRateLimit } from "./sign-in/mail-rate-limit.ts";
import type { Database } from "./store/database.ts";

/** An app that is served, with everything that a request needs. */
export interface App {
  readonly config: AppSignIn;
  readonly keys: DerivedKeys;
  readonly tokens: TokenKeys;
  readonly database: Database;
  /** Egress to servers that the app's owner configures. */
  readonly egress: Pick<Egress["users"], "connect" | "request">;
  readonly mailRateLimit: MailRateLimit;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

/** The client of this id; undefined if there is none. */
export function clientOf({ config }: App, clientId: string | undefined): Client | undefined {
  return config.clients.find((client) => client.clientId === clientId);
}
