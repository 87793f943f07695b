import type { Log } from "@holdfast/common/log.ts";
import type { Egress } from "@holdfast/egress/create-egress.ts";
import type { AppSignIn, Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { DerivedKeys } from "./derived-keys.ts";
import type { TokenKeys } from "./protocol/token-keys.ts";
import type { MailPace } from "./sign-in/mail-pace.ts";
import type { Database } from "./store/database.ts";

/** One app as it is served: all that a request needs. */
export interface App {
  readonly config: AppSignIn;
  readonly keys: DerivedKeys;
  readonly tokens: TokenKeys;
  readonly database: Database;
  /** To where the app's owner says. */
  readonly egress: Pick<Egress["users"], "connect" | "request">;
  readonly mailPace: MailPace;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

/** Undefined for an id that no client has. */
export function clientOf({ config }: App, clientId: string | undefined): Client | undefined {
  return config.clients.find((client) => client.clientId === clientId);
}
