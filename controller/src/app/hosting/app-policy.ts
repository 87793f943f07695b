import { isDeepStrictEqual } from "node:util";
import { hostOfMachine, type MachineObject } from "#fleet/machine/machine.ts";
import type { PolicySource } from "#fleet/network-policy/policy-source.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { frontPort } from "./hosting.ts";

/**
 * The rules for the machines of apps: ingresses from these networks and apps to which one is attached reach them, and
 * they reach the platform's API.
 */
export function createAppPolicy(
  apps: Pick<Collection<AppObject>, "get" | "values" | "subscribe">,
  machines: Pick<Collection<MachineObject>, "get" | "by" | "subscribe">,
  {
    ingresses,
    api,
  }: {
    readonly ingresses: readonly string[];
    readonly api: { readonly addresses: readonly string[]; readonly port: number };
  },
): PolicySource {
  /** Networks of the apps that have an attached app, by its id. */
  function consumers(): ReadonlyMap<string, readonly string[]> {
    const found = new Map<string, string[]>();
    for (const { object } of apps.values()) {
      const targets = object.spec.attachments.filter(({ app }) => app === true);
      if (targets.length === 0) continue;
      const addresses = object.status.hosting?.nodeIds.map((id) => machines.get(id)?.object.status.address ?? "") ?? [];
      const networks = addresses.filter((address) => address !== "").map((address) => `${address}/32`);
      for (const { serviceId } of targets) found.set(serviceId, [...(found.get(serviceId) ?? []), ...networks]);
    }
    return found;
  }
  const hasTargets = (app: AppObject | undefined) => app?.spec.attachments.some((each) => each.app === true) === true;
  const appInputsOf = (app: AppObject | undefined) =>
    hasTargets(app) ? [app?.status.hosting?.nodeIds, app?.spec.attachments] : undefined;
  const inputsOf = (machine: MachineObject | undefined) =>
    machine?.spec.owner?.kind === appKind.name ? [machine.spec.hostId, machine.status.address] : undefined;
  return {
    name: appKind.name,
    rulesOn(hostId) {
      const networks = consumers();
      return machines.by(hostOfMachine, hostId).flatMap(({ object: { spec, status } }) => {
        const { owner } = spec;
        if (owner?.kind !== appKind.name || status.address === "") return [];
        const from = [...new Set([...ingresses, ...(networks.get(owner.id) ?? [])])];
        const own = [`${status.address}/32`];
        return [
          { owner, to: status.address, port: frontPort, from },
          ...api.addresses.map((to) => ({ owner, to, port: api.port, from: own })),
        ];
      });
    },
    subscribe(onChange) {
      const watches = [
        machines.subscribe((id, before) => {
          const after = machines.get(id)?.object;
          if (isDeepStrictEqual(inputsOf(before), inputsOf(after))) return;
          const { owner } = (after ?? before)?.spec ?? {};
          // The machines of an attached app may be on any host.
          if (hasTargets(apps.get(owner?.id ?? "")?.object)) onChange();
          else onChange(new Set([before, after].flatMap((machine) => machine?.spec.hostId ?? [])));
        }),
        apps.subscribe((id, before) => {
          if (!isDeepStrictEqual(appInputsOf(before), appInputsOf(apps.get(id)?.object))) onChange();
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
