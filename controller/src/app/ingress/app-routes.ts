import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { endpointText } from "@holdfast/common/endpoint.ts";
import {
  type AcmeChallengeSchema,
  type AppLoginSchema,
  type AppRoute,
  AppRouteSchema,
} from "@holdfast/proto/holdfast/ingress/v1/ingress_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { AppObject } from "../app/app.ts";
import { type HostedApp, isHosted } from "../hosting/hosted-app.ts";
import { frontPort } from "../hosting/hosting.ts";
import { appHost } from "./app-host.ts";

/**
 * The routes of all apps that have served once and are not being deleted. An app has its verified domains beside its
 * name, unless one is the host of its issuer, and its floating IP.
 */
export function appRoutes(
  apps: Iterable<{ readonly object: AppObject }>,
  machine: (id: string) => MachineObject | undefined,
  domain: string,
  isIssuer: (appId: string, domain: string) => boolean,
  loginOf: (app: HostedApp) => MessageInitShape<typeof AppLoginSchema> | undefined,
  challengesOf: (appId: string, domains: readonly string[]) => MessageInitShape<typeof AcmeChallengeSchema>[],
): AppRoute[] {
  const routed = [...apps].flatMap(({ object }) => {
    if (!isHosted(object) || object.metadata.deletionRequestedAt !== undefined) return [];
    const { servingId, readyIds } = object.status.hosting;
    return servingId === null && readyIds.length === 0 ? [] : [object];
  });
  const domains = domainsByApp(routed);
  return routed.map((app) => {
    const { id } = app.metadata;
    const addresses = app.status.hosting.readyIds
      .map((machineId) => machine(machineId)?.status.address ?? "")
      .filter((address) => address !== "");
    const nodes = addresses.map((address) => endpointText(address, frontPort));
    const login = loginOf(app);
    const { floatingIp } = app.spec.hosting;
    const floating = floatingIp === undefined ? [] : [floatingIp];
    const own = (domains.get(id) ?? []).filter((name) => !isIssuer(id, name));
    return create(AppRouteSchema, {
      appId: id,
      hosts: [appHost(app, domain), ...own, ...floating],
      nodes,
      ...(login && { login }),
      challenges: challengesOf(id, own),
    });
  });
}

/** The verified domains of each app, by its id. A domain belongs to the first app that verified it. */
function domainsByApp(apps: readonly AppObject[]): ReadonlyMap<string, readonly string[]> {
  const verified = apps.flatMap(({ metadata, spec }) =>
    spec.domains.flatMap(({ name, verifiedAt }) =>
      verifiedAt === null ? [] : [{ name, verifiedAt, id: metadata.id }],
    ),
  );
  const earliestFirst = verified.toSorted((a, b) => a.verifiedAt - b.verifiedAt || (a.id < b.id ? -1 : 1));
  const domains = new Map<string, string[]>();
  for (const { name, id } of new Map(earliestFirst.toReversed().map((each) => [each.name, each])).values())
    domains.set(id, [...(domains.get(id) ?? []), name]);
  return domains;
}
