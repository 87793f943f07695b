import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type AppObject, appKind, type DomainSpec } from "./app.ts";
import { type LookUpTxt, recordOf } from "./domain-record.ts";

export interface DomainChecksDeps {
  readonly apps: Pick<Collection<AppObject>, "ids" | "getCurrent">;
  readonly lookUpTxt: LookUpTxt;
  /** True if the domain is the host of the app's issuer, which keeps it. */
  readonly isIssuer: (appId: string, domain: string) => boolean;
  /** True while an operator has paused what ends by itself. */
  readonly isPaused: () => boolean;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Time without the record after which a domain is not verified any more: an outage of its name servers is shorter. */
const missingMaxMs = 3 * dayMs;
const lookupTimeoutMs = 8_000;
/** Lookups without a response after which a round ends: the resolvers themselves may be away. */
const failuresMax = 5;

/**
 * Checks the record of each verified domain once a day. A domain without it for three days loses its verification, so
 * that its next owner can use it.
 */
export function createDomainChecks(deps: DomainChecksDeps): ControlLoop {
  const { apps, isIssuer, isPaused, begin, clock, log } = deps;

  /** The values of the domain's record; undefined if no server responds. */
  async function valuesOf(domain: DomainSpec, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(lookupTimeoutMs)]);
    const found = await deps.lookUpTxt(recordOf(domain).name, limit).catch(() => undefined);
    signal.throwIfAborted();
    return found;
  }

  /** Checks the domains of an app that are due. Returns the number of lookups without a response. */
  async function check(id: string, signal: AbortSignal): Promise<number> {
    const app = await apps.getCurrent(id, signal);
    if (app === undefined) return 0;
    const { metadata, spec } = app.object;
    const now = clock.now();
    let failures = 0;
    const domains: DomainSpec[] = [];
    for (const domain of spec.domains) {
      const isChecked = isDue(domain, now) && !isIssuer(id, domain.name);
      const found = isChecked ? await valuesOf(domain, signal) : undefined;
      if (isChecked && found === undefined) failures += 1;
      const checked = found === undefined ? domain : afterCheck(domain, found, now);
      if (domain.verifiedAt !== null && checked.verifiedAt === null)
        log.warn("domain not verified any more", { app: id, domain: domain.name });
      domains.push(checked);
    }
    if (domains.every((domain, index) => domain === spec.domains[index])) return failures;
    const unit = begin();
    const isLost = domains.some(({ verifiedAt }, index) => verifiedAt !== spec.domains[index]?.verifiedAt);
    const after = { ...app.object, spec: { ...spec, domains } };
    unit.update(appKind, app, isLost ? { ...after, metadata: nextMetadata(metadata, now) } : after);
    try {
      await unit.commit(signal);
    } catch (error) {
      // A call changed the app during the lookups: the next round checks it.
      if (!(error instanceof Conflict)) throw error;
    }
    return failures;
  }

  return createPeriodic("domain-checks", hourMs, async (signal) => {
    if (isPaused()) return;
    let failures = 0;
    for (const id of apps.ids()) {
      failures += await check(id, signal);
      if (failures >= failuresMax) return;
    }
  });
}

function isDue({ verifiedAt, checkedAt = verifiedAt ?? 0 }: DomainSpec, now: number): boolean {
  return verifiedAt !== null && now - checkedAt >= dayMs;
}

/** The domain after a check. `found`: the values of its record. */
function afterCheck(domain: DomainSpec, found: readonly string[], now: number): DomainSpec {
  const { missingSince = now, ...rest } = domain;
  if (found.includes(recordOf(domain).value)) return { ...rest, checkedAt: now };
  if (now - missingSince >= missingMaxMs) return { ...rest, checkedAt: now, verifiedAt: null };
  return { ...rest, checkedAt: now, missingSince };
}
