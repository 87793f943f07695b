import { describe, expect, it } from "vitest";
import { type KernelRoute, forwardingFilter, type RoutePlan, planRoutes, type RouteToHost } from "./route-plan.ts";

const east = { hostId: "east", network: "10.78.0.0/16", address: "192.0.2.2" };
const by = (route: Partial<KernelRoute> | undefined): RouteToHost => ({
  other: east,
  route: route && { dst: "192.0.2.2", ...route },
});
const near = by({ dev: "eth0" });
const ownRoute = { dst: "10.78.0.0/16", gateway: "192.0.2.2", dev: "eth0", protocol: "146", metric: 77 };
const nothing: RoutePlan = { add: [], remove: [], devices: [], behind: new Map() };
const added = [{ network: "10.78.0.0/16", via: "192.0.2.2", dev: "eth0" }];

describe("routes to other hosts", () => {
  // biome-ignore format: a table
  it.each<[string, RouteToHost[], KernelRoute[], Partial<RoutePlan>]>([
    ["are routes by way of hosts on the same network",     [near], [],                                   { add: added, devices: ["eth0"] }],
    ["are left where they are",                            [near], [ownRoute],                               { devices: ["eth0"] }],
    ["follow a host that moved",                           [near], [{ ...ownRoute, gateway: "192.0.2.9" }],  { add: added, devices: ["eth0"] }],
    ["go with their host",                                 [],     [ownRoute],                               { remove: ["10.78.0.0/16"] }],
    ["of another installation are left alone",             [],     [{ ...ownRoute, metric: 80 }],            {}],
    ["of an operator are left alone, and do",              [near], [{ dst: "10.78.0.0/16", dev: "wg0" }], { devices: ["eth0"] }],
    ["are not needed on the same machine",                 [by({ dev: "lo", type: "local" })], [],       {}],
    ["cannot be had by way of a gateway",                  [by({ dev: "eth0", gateway: "192.0.2.254" })], [], { behind: new Map([["east", "192.0.2.254"]]) }],
    ["behind a gateway are an operator's",                 [by({ dev: "eth0", gateway: "192.0.2.254" })], [{ dst: "10.78.0.0/16", gateway: "192.0.2.254" }], {}],
    ["end when a gateway came between",                    [by({ dev: "eth0", gateway: "192.0.2.254" })], [ownRoute], { remove: ["10.78.0.0/16"], behind: new Map([["east", "192.0.2.254"]]) }],
    ["to a host without a route are none",                 [by(undefined)], [],                          {}],
  ])("%s", (_, ways, routes, expected) => {
    expect(planRoutes(ways, routes, 77)).toEqual({ ...nothing, ...expected });
  });

  it("forward to machines only, and have no guard where no forwarding was enabled", () => {
    const guard = forwardingFilter("t", "hf77-", ["eth0", "eth1"]);
    for (const device of ["eth0", "eth1"]) expect(guard).toContain(`iifname "${device}" oifname != "hf77-*" drop`);
    expect(forwardingFilter("t", "hf77-", [])).toBe("add table inet t\ndelete table inet t\n");
  });
});
