import { describe, expect, test } from "vitest";
import { commandsBetween } from "./haproxy-commands.ts";
import { emptyTable, hostsOf, type Route, serversMax, withRoutes } from "./route-table.ts";

const routesOf = (...routes: Route[]) => new Map(routes.map((route) => [route.appId, route]));
const shop = {
  appId: "shop",
  hosts: ["shop.test"],
  nodes: ["127.0.0.2:80", "127.0.0.3:80"],
  certificates: [],
  challenges: [],
};
const blog = {
  appId: "blog",
  hosts: ["blog.test", "www.test"],
  nodes: ["127.0.0.4:80"],
  certificates: [],
  challenges: [],
};
const files = {
  hostsFile: "/hosts",
  loginsFile: "/logins",
  challengesFile: "/challenges",
  certificates: { directory: "/certificates", listFile: "/list", key: "key" },
};

describe("a table of routes", () => {
  test("gives each app a backend and each machine a server, and keeps them", () => {
    const first = withRoutes(emptyTable, routesOf(shop, blog));
    expect([...hostsOf(first)]).toEqual([
      ["shop.test", 0],
      ["blog.test", 1],
      ["www.test", 1],
    ]);
    const next = withRoutes(first, routesOf({ ...shop, nodes: ["127.0.0.5:80", "127.0.0.3:80"] }, blog));
    expect(next.backends[0]?.servers).toEqual(["127.0.0.5:80", "127.0.0.3:80"]);
    expect(commandsBetween(first, next, files)).toEqual([
      "set server app0/node0 state maint",
      "set server app0/node0 addr 127.0.0.5 port 80",
      "set server app0/node0 state ready",
      "set server grpc0/node0 state maint",
      "set server grpc0/node0 addr 127.0.0.5 port 80",
      "set server grpc0/node0 state ready",
    ]);
  });

  test("removes the hosts of an app before the servers of its backend get another app", () => {
    const first = withRoutes(emptyTable, routesOf(shop));
    const next = withRoutes(first, routesOf(blog));
    expect(commandsBetween(first, next, files)).toEqual([
      "del map /hosts shop.test",
      "set server app0/node0 state maint",
      "set server app0/node0 addr 127.0.0.4 port 80",
      "set server app0/node0 state ready",
      "set server grpc0/node0 state maint",
      "set server grpc0/node0 addr 127.0.0.4 port 80",
      "set server grpc0/node0 state ready",
      "set server app0/node1 state maint",
      "set server grpc0/node1 state maint",
      "add map /hosts blog.test 0",
      "add map /hosts www.test 0",
    ]);
  });

  test("has a domain's certificate before its route, and removes it after the route", () => {
    const first = withRoutes(emptyTable, routesOf(blog));
    const own = { ...blog, certificates: [{ host: "www.test", chain: "chain\n\nissuer\n", key: "" }] };
    const second = withRoutes(first, routesOf(own));
    expect(commandsBetween(first, second, files)).toEqual([
      "new ssl cert /certificates/www.test.pem",
      "set ssl cert /certificates/www.test.pem <<\nchain\nissuer\nkey\n",
      "commit ssl cert /certificates/www.test.pem",
      "add ssl crt-list /list /certificates/www.test.pem",
    ]);
    const renewed = withRoutes(
      second,
      routesOf({ ...blog, certificates: [{ host: "www.test", chain: "newer", key: "its key" }] }),
    );
    expect(commandsBetween(second, renewed, files)).toEqual([
      "set ssl cert /certificates/www.test.pem <<\nnewer\nits key\n",
      "commit ssl cert /certificates/www.test.pem",
    ]);
    expect(commandsBetween(renewed, withRoutes(renewed, routesOf({ ...blog, hosts: ["blog.test"] })), files)).toEqual([
      "del map /hosts www.test",
      "del ssl crt-list /list /certificates/www.test.pem",
      "del ssl cert /certificates/www.test.pem",
    ]);
  });

  test("has the response to a challenge at its path, until the challenge ends", () => {
    const first = withRoutes(emptyTable, routesOf(shop));
    const next = withRoutes(first, routesOf({ ...shop, challenges: [{ token: "t", keyAuthorization: "t.print" }] }));
    expect(commandsBetween(first, next, files)).toEqual(["add map /challenges /.well-known/acme-challenge/t t.print"]);
    expect(commandsBetween(next, first, files)).toEqual(["del map /challenges /.well-known/acme-challenge/t"]);
  });

  test("has twice the backends once all are in use, and at most as many servers as HAProxy", () => {
    const many = Array.from({ length: 65 }, (_, n) => ({
      appId: `a${n}`,
      hosts: [`a${n}.test`],
      nodes: [],
      certificates: [],
      challenges: [],
    }));
    const full = withRoutes(emptyTable, routesOf(...many.slice(0, 64)));
    expect(full.backends).toHaveLength(64);
    const more = withRoutes(full, routesOf(...many));
    expect([more.backends.length, hostsOf(more).get("a64.test")]).toEqual([128, 64]);
    const nodes = Array.from({ length: serversMax + 5 }, (_, n) => `127.0.1.${n}:80`);
    expect(withRoutes(emptyTable, routesOf({ ...shop, nodes })).backends[0]?.servers).toHaveLength(serversMax);
  });
});
