import { expect, test } from "vitest";
import { advertisedListenerOf } from "./advertised-listener.ts";

const deps = {
  resolve: async (name: string) => {
    if (name === "nowhere.test") throw Object.assign(new Error("no"), { code: "ENOTFOUND" });
    return name === "db.test" ? ["2001:db8::9", "192.0.2.1"] : ["192.0.2.77"];
  },
  isOwn: (address: string) => ["192.0.2.1", "2001:db8::1"].includes(address),
};

// biome-ignore format: a table
test.each([
  ["nothing",                    {},                                             undefined],
  ["an address",                 { advertise: "192.0.2.1" },                     { advertise: "192.0.2.1", listen: "192.0.2.1", address: "192.0.2.1" }],
  ["an address of IPv6",         { advertise: "2001:db8::1" },                   { advertise: "2001:db8::1", listen: "2001:db8::1", address: "2001:db8::1" }],
  ["a name",                     { advertise: "db.test" },                       { advertise: "db.test", listen: "192.0.2.1", address: "192.0.2.1" }],
  ["an address before it",       { advertise: "203.0.113.5", listen: "192.0.2.1" }, { advertise: "203.0.113.5", listen: "192.0.2.1", address: "203.0.113.5" }],
  ["a name that resolves to one", { advertise: "far.test", listen: "192.0.2.1" }, { advertise: "far.test", listen: "192.0.2.1", address: "192.0.2.1" }],
])("with %s the advertised listener is as expected", async (_, chosen, expected) => {
  expect(await advertisedListenerOf(chosen, deps)).toEqual(expected);
});

// biome-ignore format: a table
test.each([
  [{ advertise: "192.0.2.9" },                        "--advertise: 192.0.2.9 is not an address of this machine"],
  [{ advertise: "far.test" },                         "--advertise: far.test does not resolve to an address of this machine"],
  [{ advertise: "nowhere.test" },                     "--advertise: nowhere.test cannot be resolved (ENOTFOUND)"],
  [{ advertise: "db.test", listen: "192.0.2.9" },     "--listen: 192.0.2.9 is not an address of this machine"],
  [{ listen: "192.0.2.1" },                           "--listen: other machines need --advertise ADDRESS as well"],
])("%j is refused", async (chosen, message) => {
  await expect(advertisedListenerOf(chosen, deps)).rejects.toThrow(message);
});
