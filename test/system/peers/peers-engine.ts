import type { ConnectionJson } from "@holdfast/testing/api/service-json.ts";
import { clusterNames, writeKeys } from "@holdfast/testing/engines/etcd/ledger.ts";
import { registryLines } from "@holdfast/testing/engines/etcd/registry-lines.ts";
import type { RegistryLine } from "@holdfast/testing/platform/extended-checkout.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { AcknowledgedWriter } from "../../faults/acknowledged-writer.ts";

/** An engine whose members elect their leader, with all that the tests of its services need. */
export interface PeersEngine {
  readonly databaseType: string;
  /** Lines that add an engine of the tests to a copy of the checkout; none for an engine of the catalog. */
  readonly registryLines: readonly RegistryLine[];
  /** Parameters of the service. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Name of a member in the engine. */
  memberName(number: number): string;
  /** Names of the members, sorted, as a majority of them has them. */
  memberNames(platform: Platform, connection: ConnectionJson): Promise<string[]>;
  /** Writes to the service by its name until the signal, and records what it acknowledged. */
  writeTo(platform: Platform, connection: ConnectionJson, signal: AbortSignal): AcknowledgedWriter;
}

/** etcd, an engine of the tests. */
export const etcd: PeersEngine = {
  databaseType: "etcd",
  registryLines,
  parameters: { "drain-seconds": "4" },
  memberName: (number) => `m-${number}`,
  memberNames: clusterNames,
  writeTo: writeKeys,
};
