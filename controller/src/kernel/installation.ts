import type { SourceGroups } from "@holdfast/common/source-groups.ts";
import type { EventDefinition } from "./outbox/event-definition.ts";
import { definePart } from "./part.ts";

/** Facts of the installation that the controller gives to every system. */
export interface Installation {
  /** Environment of the process, for code that passes it on to processes of its own. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** URL at which clients reach the platform. */
  readonly baseUrl: string;
  /** host:port of the API, the history, etcd, the object store and the issuers, and of servers that operators name. */
  readonly listeners: readonly string[];
  /** Addresses whose listening ports belong to the installation, besides those of this host. */
  readonly ownAddresses: readonly string[];
  /** Groups addresses into sources of calls. */
  readonly sources: SourceGroups;
  readonly eventTypes: ReadonlyMap<string, EventDefinition>;
}

export const installationPart = definePart<Installation>("the installation");
