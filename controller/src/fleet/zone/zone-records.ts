import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import { dnsRecordKind, type DnsRecordObject, type DnsRecordSpec } from "./dns-record.ts";

/** A name with the addresses that its owner desires. */
export interface DesiredRecord {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ttlS: number;
}

type Owner = DnsRecordSpec["owner"];

/** The DNS records of each owner, changed in the owner's transactions. */
export interface ZoneRecords {
  /** Replaces all records of the owner in the unit of work. Returns true if that changes anything. */
  put(work: Changes, owner: Owner, desired: readonly DesiredRecord[]): boolean;
  /** Removes all records of the owner in the unit of work. Returns true if there were any. */
  remove(work: Changes, owner: Owner): boolean;
  of(owner: Owner): DnsRecordObject[];
  close(): void;
}

export function createZoneRecords(records: Collection<DnsRecordObject>, clock: Clock): ZoneRecords {
  const names = new Map<string, Set<string>>();
  const owners = new Map<string, string>();
  const subscription = records.subscribe(index);
  for (const { object } of records.values()) index(object.metadata.id);

  function index(name: string): void {
    const record = records.get(name)?.object;
    const after = record && keyOf(record.spec.owner);
    const before = owners.get(name);
    if (before === after) return;
    if (before !== undefined) drop(before, name);
    if (after === undefined) owners.delete(name);
    else {
      owners.set(name, after);
      names.set(after, (names.get(after) ?? new Set()).add(name));
    }
  }

  function drop(owner: string, name: string): void {
    const remaining = names.get(owner);
    remaining?.delete(name);
    if (remaining?.size === 0) names.delete(owner);
  }

  function put(work: Changes, owner: Owner, desired: readonly DesiredRecord[]): boolean {
    let changed = false;
    for (const { name, addresses, ttlS } of desired) {
      const spec: DnsRecordSpec = { addresses: [...addresses].sort(), ttlS, owner };
      const before = records.get(name);
      if (before !== undefined && isSame(before.object.spec, spec)) continue;
      changed = true;
      const now = clock.now();
      if (before === undefined) {
        const metadata = newMetadata(name, now);
        work.create(dnsRecordKind, { metadata, spec, status: {} });
      } else {
        if (keyOf(before.object.spec.owner) !== keyOf(owner)) throw new Error(`${name} belongs to another owner`);
        const { metadata } = before.object;
        const next = nextMetadata(metadata, now);
        work.update(dnsRecordKind, before, { ...before.object, metadata: next, spec });
      }
    }
    const retained = new Set(desired.map(({ name }) => name));
    for (const name of names.get(keyOf(owner)) ?? []) {
      const before = records.get(name);
      if (retained.has(name) || before === undefined) continue;
      changed = true;
      work.remove(dnsRecordKind, before);
    }
    return changed;
  }

  return {
    put,
    remove: (work, owner) => put(work, owner, []),
    of(owner) {
      const found = [...(names.get(keyOf(owner)) ?? [])].map((name) => records.get(name)?.object);
      return found.filter((record): record is DnsRecordObject => record !== undefined);
    },
    close: () => subscription.close(),
  };
}

function keyOf({ kind, id }: Owner): string {
  return `${kind}/${id}`;
}

function isSame(a: DnsRecordSpec, b: DnsRecordSpec): boolean {
  return a.ttlS === b.ttlS && keyOf(a.owner) === keyOf(b.owner) && a.addresses.join() === b.addresses.join();
}
