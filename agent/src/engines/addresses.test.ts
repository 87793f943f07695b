import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { addressesOf } from "./addresses.ts";

const listener = (audience: string, address: string) => ({ name: "engine", address, port: 5432, audience });

test.each([
  ["listeners that share an address yield it once", ["10.77.0.2", "10.77.0.2"], ["10.77.0.2"]],
  [
    "different addresses are listed, the private one first",
    ["10.77.0.2", "203.0.113.17"],
    ["10.77.0.2", "203.0.113.17"],
  ],
])("%s", (_, [own = "", other = ""], expected) => {
  const listeners = [listener("private", own), listener("public", other), listener("peer", "10.77.0.9")];
  expect(addressesOf(create(InstanceSpecSchema, { address: own, listeners }))).toEqual(expected);
});

test("settings without listeners yield their address", () => {
  expect(addressesOf(create(InstanceSpecSchema, { address: "10.77.0.2" }))).toEqual(["10.77.0.2"]);
});
