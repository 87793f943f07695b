import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import { newMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AppObject, DomainSpec } from "../app/app.ts";
import { isHosted } from "../hosting/hosted-app.ts";
import { newPrivateKey } from "./acme-account.ts";
import { type AcmeAuthority, AuthorityRefusal, AuthorityUnavailable } from "./acme-authority.ts";
import { afterBegin, afterFailure, afterIssue, afterMissing, nextStep } from "./certificate-plan.ts";
import {
  type CertificateOrder,
  type Challenge,
  certificateId,
  type DomainCertificateObject,
  type DomainCertificateStatus,
  domainCertificateKind,
  initialStatus,
  openedKey,
  partsOfId,
  sealedKey,
} from "./domain-certificate.ts";
import { checkedCertificate } from "./issued-certificate.ts";

export interface CertificateWorkDeps {
  readonly apps: Collection<AppObject>;
  readonly certificates: Collection<DomainCertificateObject>;
  /** Undefined if ACME is not set up: certificates of the installation's authority serve. */
  readonly authority: AcmeAuthority | undefined;
  /** True for a domain that the app's issuer has, which ingresses do not serve. */
  readonly isIssuer: (appId: string, domain: string) => boolean;
  readonly hostOf: (app: AppObject) => string;
  /** False if name servers respond that the domain has no address; undefined if none responds. */
  readonly hasAddress: (domain: string, signal: AbortSignal) => Promise<boolean | undefined>;
  /** True if every ingress responds to the challenge. */
  readonly isServed: (domain: string, challenge: Challenge, signal: AbortSignal) => Promise<boolean>;
  readonly sealer: Sealer;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const pollMs = 1_000;
/** Longest time until a certificate is looked at again. */
const checkMs = 3_600_000;
/** Time after which the authority verifies although an ingress does not respond, which may be down. */
const servedWithinMs = 60_000;
/** Orders of one organization within `orderWindowMs`: authorities limit those of the installation. */
const ordersMax = 30;
const orderWindowMs = 3_600_000;

/**
 * Obtains and renews the certificate of each verified domain of a hosted app (RFC 8555). Key: the certificate's id. The
 * order and its key are stored before the authority signs, and each run performs one step of it, so that any controller
 * continues after any crash; only one whose read is current can store the next step.
 */
export function createCertificateWork(deps: CertificateWorkDeps): ControlLoop {
  const { apps, certificates, authority, isIssuer, sealer, begin, clock, log } = deps;

  function needsCertificate(app: AppObject, { name, verifiedAt }: DomainSpec): boolean {
    if (authority === undefined || verifiedAt === null || app.metadata.deletionRequestedAt !== undefined) return false;
    return isHosted(app) && app.status.hosting.servingId !== null && !isIssuer(app.metadata.id, name);
  }

  async function update(
    stored: Stored<DomainCertificateObject>,
    status: DomainCertificateStatus,
    signal: AbortSignal,
  ): Promise<void> {
    if (status === stored.object.status) return;
    const unit = begin();
    const metadata = { ...stored.object.metadata, updatedAt: clock.now() };
    unit.update(domainCertificateKind, stored, { ...stored.object, metadata, status });
    await certificates.untilRevision(await unit.commit(signal), 1_000);
  }

  async function fail(
    stored: Stored<DomainCertificateObject>,
    reason: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { domain } = stored.object.spec;
    const status = afterFailure(stored.object.status, reason, clock.now());
    await update(stored, status, signal);
    log.warn("certificate not obtained", { domain, reason: status.error, nextAttemptAt: status.nextAttemptAt });
    return again(status.nextAttemptAt - clock.now(), "the last order failed");
  }

  async function miss(
    stored: Stored<DomainCertificateObject>,
    reason: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const status = afterMissing(stored.object.status, reason, clock.now());
    await update(stored, status, signal);
    return again(status.nextAttemptAt - clock.now(), reason);
  }

  /** Orders of the organization within the last hour, deleted domains included. */
  function recentOrders(organizationId: string): number {
    const since = clock.now() - orderWindowMs;
    return ofOrganization(certificates, organizationId).filter(({ status }) => (status.attemptedAt ?? 0) > since)
      .length;
  }

  async function order(
    stored: Stored<DomainCertificateObject>,
    app: AppObject,
    from: AcmeAuthority,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { metadata, spec, status } = stored.object;
    const { domain } = spec;
    if (recentOrders(metadata.organizationId) >= ordersMax)
      return miss(stored, `The organization has ordered ${ordersMax} certificates within an hour.`, signal);
    if ((await deps.hasAddress(domain, signal)) === false)
      return miss(stored, `${domain} has no address: add a CNAME record for ${deps.hostOf(app)}.`, signal);
    const { url, challenge } = await from.begin(domain);
    const startedAt = clock.now();
    const key = sealedKey(metadata.id, newPrivateKey(), sealer);
    const next = { directoryUrl: from.directoryUrl, url, sealedKey: key, challenge, startedAt };
    await update(stored, afterBegin(status, next), signal);
    log.info("certificate ordered", { domain, order: url });
    return again(0, "the order is stored");
  }

  async function proceed(
    stored: Stored<DomainCertificateObject>,
    current: CertificateOrder,
    from: AcmeAuthority,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { metadata, spec, status } = stored.object;
    const { domain } = spec;
    const { url, challenge, startedAt } = current;
    const found = await from.stateOf(url);
    if (found.state === "invalid") return fail(stored, found.reason, signal);
    if (found.state === "pending" && found.isChallengeOpen && challenge !== null) {
      const isServed = await deps.isServed(domain, challenge, signal);
      if (!isServed && clock.now() - startedAt < servedWithinMs) return again(pollMs, "ingresses lack the challenge");
      await from.answer(challenge);
    }
    const key = openedKey(metadata.id, current.sealedKey, sealer);
    if (found.state === "ready") await from.finalize(url, domain, key);
    if (found.state !== "valid") return again(pollMs, "the authority verifies the domain");
    const response = await from.certificateOf(url);
    let issued: ReturnType<typeof checkedCertificate>;
    try {
      issued = checkedCertificate(response, { domain, key });
    } catch (error) {
      return fail(stored, error instanceof Error ? error.message : String(error), signal);
    }
    const { directoryUrl, sealedKey: sealed } = current;
    await update(stored, afterIssue(status, { ...issued, directoryUrl, sealedKey: sealed }), signal);
    log.info("certificate obtained", { domain, issuer: issued.issuer, expiresAt: issued.expiresAt });
    return again(Math.min(issued.renewAt - clock.now(), checkMs), "the certificate is renewed later");
  }

  async function step(
    stored: Stored<DomainCertificateObject>,
    app: AppObject,
    from: AcmeAuthority,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const next = nextStep(stored.object.status, from.directoryUrl, clock.now());
    if (next.kind === "wait") return again(Math.min(next.untilMs - clock.now(), checkMs), "nothing is due");
    try {
      return next.kind === "begin"
        ? await order(stored, app, from, signal)
        : await proceed(stored, next.order, from, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AuthorityRefusal) return fail(stored, error.message, signal);
      if (!(error instanceof AuthorityUnavailable)) throw error;
      log.warn("certificate authority does not respond", { error: error.cause });
      // An order in progress is continued then.
      return miss(stored, error.message, signal);
    }
  }

  /** Removes a certificate without a domain once its last order does not count any more. */
  async function remove(stored: Stored<DomainCertificateObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const remainingMs = (stored.object.status.attemptedAt ?? 0) + orderWindowMs - clock.now();
    if (authority !== undefined && remainingMs > 0) return again(remainingMs, "its order counts toward a limit");
    const unit = begin();
    unit.remove(domainCertificateKind, stored);
    await unit.commit(signal);
    return settled;
  }

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { appId, domainId } = partsOfId(id);
    const stored = await certificates.getCurrent(id, signal);
    const app = (await apps.getCurrent(appId, signal))?.object;
    const domain = app?.spec.domains.find((each) => each.id === domainId);
    if (authority === undefined || app === undefined || domain === undefined || !needsCertificate(app, domain))
      return stored === undefined ? settled : remove(stored, signal);
    if (stored !== undefined) return step(stored, app, authority, signal);
    const { organizationId } = app.metadata;
    const unit = begin();
    unit.create(domainCertificateKind, {
      metadata: newMetadata(id, clock.now(), { organizationId }),
      spec: { appId, domainId, domain: domain.name },
      status: initialStatus,
    });
    await certificates.untilRevision(await unit.commit(signal), 1_000);
    return again(0, "its certificate has a record");
  }

  const idsOf = (app: AppObject) => app.spec.domains.map(({ id }) => certificateId(app.metadata.id, id));

  return {
    reconciler: { name: "domain-certificate", reconcile },
    *keys() {
      const recorded = new Set(certificates.ids());
      yield* recorded;
      for (const { object } of apps.values()) for (const id of idsOf(object)) if (!recorded.has(id)) yield id;
    },
    subscribe(onChange) {
      const watches = [
        certificates.subscribe((id) => onChange(id)),
        apps.subscribe((id, before) => {
          const after = apps.get(id)?.object;
          for (const app of [before, after]) for (const key of app === undefined ? [] : idsOf(app)) onChange(key);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    inputs: (id) => `${certificates.get(id)?.modRevision ?? 0n} ${apps.get(partsOfId(id).appId)?.modRevision ?? 0n}`,
  };
}
