import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AppEndpointSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { commandsOf, serversOf } from "./app-relay.ts";
import { hostsFile, innerRelayConfig } from "./container-network.ts";

const endpoint = (change: MessageInitShape<typeof AppEndpointSchema> = {}) =>
  create(AppEndpointSchema, { relay: 1, host: "orders.test", port: 5_432, addresses: ["10.0.0.1"], ...change });

test("the servers of the relay are read by the names of their columns", () => {
  const output = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_port
3 r1 1 t0 10.0.0.1 2 0 5432
3 r1 2 t1 127.0.0.1 0 4 1
3 r1 3 t2 127.0.0.1 0 5 1
`;
  expect([...serversOf(output)]).toEqual([
    ["r1/t0", "10.0.0.1:5432"],
    ["r1/t1", "127.0.0.1:1"],
    ["r1/t2", undefined],
  ]);
});

test("commands change only the servers that differ, and connections to former ones end first", () => {
  const current = new Map([
    ["r1/t0", "10.0.0.1:5432"],
    ["r2/t0", "10.0.0.2:5432"],
    ["r3/t0", undefined],
    ["r4/t0", undefined],
  ]);
  const endpoints = [endpoint(), endpoint({ relay: 3, addresses: ["10.0.0.3"], targetPort: 8_080 })];
  expect(commandsOf(current, endpoints)).toEqual([
    "set server r2/t0 state maint",
    "shutdown sessions server r2/t0",
    "set server r3/t0 addr 10.0.0.3 port 8080",
    "set server r3/t0 state ready",
  ]);
  expect(commandsOf(new Map([["r1/t0", "10.0.0.1:5432"]]), [endpoint()])).toEqual([]);
});

test("a container has each endpoint at a separate loopback address", () => {
  const endpoints = [endpoint(), endpoint({ relay: 7, host: "media.test", port: 443 })];
  expect(hostsFile(endpoints)).toBe(
    "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.0.1 app\n127.78.0.1 orders.test\n127.78.0.7 media.test\n",
  );
  const config = innerRelayConfig(endpoints, "/run/relay");
  expect(config).toContain("listen r7\n  bind 127.78.0.7:443\n  server machine unix@/run/relay/7.sock\n");
  expect(innerRelayConfig([], "/run/relay")).toBe("");
});
