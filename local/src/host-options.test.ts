import { expect, test } from "vitest";
import { readHostOptions } from "./host-options.ts";

test.each([
  ["nothing", [], {}, { dataDir: "/code/.holdfast" }],
  ["the environment", [], { HOLDFAST_DATA: "/d", HOLDFAST_PROVIDER: "incus" }, { dataDir: "/d", provider: "incus" }],
  [
    "flags",
    ["--data", "/f", "--join=/j.json", "--listen", "[::]:8450", "--address-block", "127.90"],
    { HOLDFAST_DATA: "/d" },
    { dataDir: "/f", joinFile: "/j.json", listen: "[::]:8450", addressBlock: "127.90" },
  ],
  [
    "the settings of a service",
    [],
    { HOLDFAST_JOIN: "/j.json", HOLDFAST_LISTEN: "192.0.2.2:8450", HOLDFAST_ADDRESS_BLOCK: "127.90" },
    { dataDir: "/code/.holdfast", firstJoinFile: "/j.json", listen: "192.0.2.2:8450", addressBlock: "127.90" },
  ],
])("with %s the options are as expected", (_, args, environment, expected) => {
  expect(readHostOptions(args, environment, "/code")).toEqual(expected);
});

test.each([
  [["--provider", "vms"], "--provider: vms is neither process nor incus"],
  [["--provider", "none"], "--provider: none is neither process nor incus"],
  [["--listen", "8450"], "--listen: 8450 is not HOST:PORT"],
  [["--address-block", "10.1"], "--address-block: 10.1 is not 127.N"],
  [["--address-block", "127.255"], "--address-block"],
  [["--color", "red"], "usage:"],
])("%j is refused", (args, message) => {
  expect(() => readHostOptions(args, {}, "/code")).toThrow(message);
});
