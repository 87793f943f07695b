import { expect, test } from "vitest";
import { readOptions } from "./options.ts";

test.each([
  ["nothing", [], {}, { dataDir: "/code/.holdfast", ports: {} }],
  ["the environment", [], { HOLDFAST_DATA: "/d", HOLDFAST_API_PORT: "1" }, { dataDir: "/d", ports: { api: 1 } }],
  [
    "a flag",
    ["--data", "/f", "--etcd-peer-port=2"],
    { HOLDFAST_DATA: "/d" },
    { dataDir: "/f", ports: { etcd_peer: 2 } },
  ],
  [
    "an address for others",
    ["--advertise", "192.0.2.1"],
    {},
    { dataDir: "/code/.holdfast", ports: {}, advertise: "192.0.2.1" },
  ],
  [
    "an address that is elsewhere",
    ["--advertise", "db.test"],
    { HOLDFAST_LISTEN: "::1" },
    { dataDir: "/code/.holdfast", ports: {}, advertise: "db.test", listen: "::1" },
  ],
  [
    "public addresses",
    ["--public-addresses", "203.0.113.16/28"],
    { HOLDFAST_PUBLIC_ADDRESSES: "none" },
    { dataDir: "/code/.holdfast", ports: {}, publicAddresses: "203.0.113.16/28" },
  ],
  [
    "a domain",
    [],
    { HOLDFAST_DOMAIN: "db.example.com" },
    { dataDir: "/code/.holdfast", ports: {}, domain: "db.example.com" },
  ],
  [
    "an object store",
    ["--objects", "s3://b/p?endpoint=https://s3.test", "--objects-key", "/k"],
    {},
    { dataDir: "/code/.holdfast", ports: {}, objects: "s3://b/p?endpoint=https://s3.test", objectsKey: "/k" },
  ],
])("with %s the options are as expected", (_, args, environment, expected) => {
  expect(readOptions(["up", ...args], environment, "/code")).toEqual({ command: "up", ...expected });
});

test("clean is confirmed by --yes alone", () => {
  expect(readOptions(["clean", "--yes", "--data", "/d"], {}, "/code")).toMatchObject({
    dataDir: "/d",
    isConfirmed: true,
  });
  expect(readOptions(["clean", "--data", "/d"], { HOLDFAST_YES: "1" }, "/code")).not.toHaveProperty("isConfirmed");
});

test.each([
  [["up", "--yes"], "usage:"],
  [["clean", "--data", "--yes"], "usage:"],
  [["clean", "/d"], "usage:"],
  [["up", "--api-port", "many"], "--api-port: many is not a port"],
  [["up", "--advertise", "192.0.2.1:8444"], "--advertise: 192.0.2.1:8444 is neither an address nor a name"],
  [["up", "--domain", "DB.example.com"], "--domain: DB.example.com is not a domain, such as db.example.com"],
  [["up", "--domain", "example"], "--domain: example is not a domain"],
  [["up", "--domain", "192.0.2.1"], "--domain: 192.0.2.1 is not a domain"],
  [["up", "--listen", "db.test"], "--listen: db.test is not an address"],
  [["up", "--public-addresses", "203.0.113.17/28"], "--public-addresses: 203.0.113.17/28 does not begin at its"],
  [["up", "--objects", "http://store"], "--objects: http://store is neither an absolute directory nor"],
  [["up", "--color", "red"], "usage:"],
  [["down"], "usage:"],
])("%j is refused", (args, message) => {
  expect(() => readOptions(args, {}, "/code")).toThrow(message);
});
