import type { SourceGroups } from "@holdfast/common/source-groups.ts";
import type { EventDefinition } from "./outbox/event-definition.ts";
import { definePart } from "./part.ts";

/** Facts of the installation that the controller gives to every system. */
export interface Installation {
  /** Environment of the process, for code that starts child processes. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** URL at which clients reach the platform. */
  readonly baseUrl: string;
  /**
   * host:port of the API, the history, etcd, the object store and the issuers, and of further listeners in the
   * settings.
   */
  readonly listeners: readonly string[];
  /** Addresses whose listening ports belong to the installation, besides this host's addresses. */
  readonly ownAddresses: readonly string[];
  /** Groups client addresses into sources, for rate limits. */
  readonly sources: SourceGroups;
  readonly eventTypes: ReadonlyMap<string, EventDefinition>;
}

export const installationPart = definePart<Installation>("the installation");
