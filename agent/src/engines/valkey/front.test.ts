import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { render } from "./render.ts";

const paths = { data: "/data", config: "/etc/h", tls: "/tls", run: "/run/h", software: "/usr", log: "/log" };
const member = (number: number, nodeId: string) => ({ number, nodeId, address: `127.0.0.${number}` });
const spec = create(InstanceSpecSchema, {
  nodeId: "node",
  engine: "valkey",
  version: "8.1",
  vcpu: 4,
  memoryBytes: 2n << 30n,
  address: "127.0.0.1",
  port: 6379,
  allowedCidrs: ["10.0.0.0/8", "fd00::/8"],
  listeners: [
    { name: "engine", address: "10.77.0.2", port: 6379, audience: "private" },
    { name: "engine", address: "fd00::2", port: 6379, audience: "public" },
  ],
  replication: { primaryNodeId: "node", secret: "s", members: [member(1, "node"), member(2, "other")] },
});

/** A changed byte would reload the fronts of all running services at the next agent upgrade. */
const config = `# Written by the agent of node: changes made here are lost.
global
  stats socket /run/h/listener.sock mode 660 level admin
  maxconn 2016
  nbthread 2
  ssl-default-bind-options ssl-min-ver TLSv1.2
  ssl-load-extra-del-ext
  hard-stop-after 200ms
  log stdout format raw local0 notice
defaults
  mode tcp
  log global
  option dontlog-normal
  option clitcpka
  timeout connect 2s
  # Valkey ends idle sessions (parameter "timeout").
  timeout client 24d
  timeout client-hs 10s
  timeout server 24d
frontend listener
  maxconn 2000
  bind 127.0.0.1:6379 ssl crt /tls/server.crt
  bind 10.77.0.2:6379 ssl crt /tls/server.crt
  bind [fd00::2]:6379 ssl crt /tls/server.crt
  tcp-request connection reject unless { src -f /etc/h/allowed.lst }
  tcp-request session reject unless { src -f /etc/h/allowed.lst }
  default_backend engine
frontend peers
  bind 127.0.0.1:16379 ssl crt /tls/server.crt ca-file /tls/ca.crt verify required
  tcp-request session reject unless { ssl_c_s_dn(CN) -f /etc/h/members.lst }
  default_backend engine
backend engine
  server engine unix@/run/h/valkey.sock
`;

test("the front's files are those of the agents before it was a component of all engines", () => {
  const files = new Map(render({ spec, paths }).map(({ name, content, mode }) => [name, { content, mode }]));
  expect(files.get("listener.cfg")?.content).toBe(config);
  expect(files.get("allowed.lst")).toEqual({ content: "10.0.0.0/8\nfd00::/8\n", mode: 0o640 });
  expect(files.get("members.lst")).toEqual({ content: "other\n", mode: 0o640 });
  expect([...files.keys()].toSorted()).toEqual(["allowed.lst", "listener.cfg", "members.lst", "valkey.conf"]);
});
