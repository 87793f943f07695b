import { create } from "@bufbuild/protobuf";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { type AppRoute, AppRouteSchema } from "@holdfast/proto/holdfast/ingress/v1/ingress_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { AppObject } from "../app/app.ts";
import { isHosted } from "../hosting/hosted-app.ts";
import { frontPort } from "../hosting/hosting.ts";
import { appHost } from "./app-host.ts";

/** The routes of all apps that have served once and are not being deleted. */
export function appRoutes(
  apps: Iterable<{ readonly object: AppObject }>,
  machine: (id: string) => MachineObject | undefined,
  domain: string,
): AppRoute[] {
  return [...apps].flatMap(({ object }) => {
    if (!isHosted(object) || object.metadata.deletionRequestedAt !== undefined) return [];
    const { servingId, readyIds } = object.status.hosting;
    if (servingId === null && readyIds.length === 0) return [];
    const addresses = readyIds.map((id) => machine(id)?.status.address ?? "").filter((address) => address !== "");
    const nodes = addresses.map((address) => endpointText(address, frontPort));
    return [create(AppRouteSchema, { appId: object.metadata.id, hosts: [appHost(object, domain)], nodes })];
  });
}
