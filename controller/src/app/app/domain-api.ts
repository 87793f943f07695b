import type { Call, Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { AppService } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type AppObject, type DomainSpec, domainsMax, hasVerified, newDomain } from "./app.ts";
import type { AppAccess, ChangeApp } from "./app-access.ts";
import { type CertificateOfDomain, domainMessage } from "./app-message.ts";
import { domainFault, domainNameOf, type LookUpTxt, recordOf } from "./domain-record.ts";

type DomainHandlers = Pick<Handlers<typeof AppService>, "createAppDomain" | "verifyAppDomain" | "deleteAppDomain">;

export interface DomainApiDeps {
  readonly apps: Pick<Collection<AppObject>, "values">;
  readonly access: AppAccess;
  readonly change: ChangeApp;
  readonly lookUpTxt: LookUpTxt;
  readonly certificateOf: CertificateOfDomain;
  /** True if the domain is the host of the app's issuer. */
  readonly isIssuer: (appId: string, domain: string) => boolean;
  /** The platform's domain; apps cannot have it or a name below it. */
  readonly domain: string;
  readonly clock: Clock;
  readonly newId: () => string;
}

const lookupTimeoutMs = 8_000;

/** The RPCs of apps' domains. */
export function domainHandlers(deps: DomainApiDeps): DomainHandlers {
  const { apps, access, change, clock } = deps;

  function domainOf({ spec }: AppObject, domainId: string): DomainSpec {
    const domain = spec.domains.find(({ id }) => id === domainId);
    if (domain === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The app has no such domain.");
    return domain;
  }

  async function requireRecord(domain: DomainSpec, call: Call): Promise<void> {
    const { name, value } = recordOf(domain);
    const signal = AbortSignal.any([call.signal, AbortSignal.timeout(lookupTimeoutMs)]);
    const found = await deps.lookUpTxt(name, signal).catch(() => undefined);
    call.signal.throwIfAborted();
    if (found === undefined)
      throw new HoldfastError(
        "CUSTOM_DOMAIN_NOT_VERIFIED",
        `The name servers of ${name} do not respond; try again later.`,
      );
    if (!found.includes(value))
      throw new HoldfastError(
        "CUSTOM_DOMAIN_NOT_VERIFIED",
        `${name} has no TXT record with the value ${value}; add it.`,
      );
  }

  return {
    async createAppDomain({ appId, name: requestedName }, call) {
      access.require(appId, call);
      const name = domainNameOf(requestedName, deps.domain);
      if (name === undefined)
        throw invalid({
          field: "name",
          code: "invalid_value",
          detail: domainFault(requestedName, deps.domain),
        });
      const domain = newDomain(deps.newId(), name, clock.now());
      const response = domainMessage(appId, domain);
      await change(
        appId,
        call,
        { action: "app.domain.create", detail: name },
        ({ spec }) => {
          if (spec.domains.length >= domainsMax)
            throw new HoldfastError("WRONG_STATE", `The app has ${domainsMax} domains already.`);
          if (spec.domains.some((each) => each.name === name))
            throw new HoldfastError("NAME_TAKEN", `The app has the domain ${name} already.`);
          return { ...spec, domains: [...spec.domains, domain] };
        },
        response,
      );
      return response;
    },

    async verifyAppDomain({ appId, domainId }, call) {
      const before = domainOf(access.require(appId, call).object, domainId);
      if (before.verifiedAt === null) await requireRecord(before, call);
      const now = clock.now();
      const { spec } = await change(appId, call, { action: "app.domain.verify", detail: before.name }, (app) => {
        domainOf(app, domainId);
        const others = [...apps.values()].filter(({ object }) => object.metadata.id !== appId);
        if (others.some(({ object }) => hasVerified(object, before.name)))
          throw new HoldfastError("NAME_TAKEN", `${before.name} is verified by another app.`);
        const domains = app.spec.domains.map((each) =>
          each.id === domainId ? { ...each, verifiedAt: each.verifiedAt ?? now } : each,
        );
        return { ...app.spec, domains };
      });
      const after = spec.domains.find(({ id }) => id === domainId) ?? before;
      return domainMessage(appId, after, deps.certificateOf(appId, after));
    },

    async deleteAppDomain({ appId, domainId }, call) {
      const { name } = domainOf(access.require(appId, call).object, domainId);
      await change(appId, call, { action: "app.domain.delete", detail: name }, (app) => {
        domainOf(app, domainId);
        if (deps.isIssuer(appId, name))
          throw new HoldfastError("WRONG_STATE", `The app's issuer uses the domain ${name}. POST auth/disable first.`);
        return { ...app.spec, domains: app.spec.domains.filter(({ id }) => id !== domainId) };
      });
      return {};
    },
  };
}
