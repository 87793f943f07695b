import { expect, test } from "vitest";
import { edgeRuleset } from "./edge-rules.ts";

const config = {
  table: "holdfast_77",
  networks: ["10.77.0.0/16", "203.0.113.16/28"],
  links: "hf77-",
  hostAddress: "10.77.0.1",
  hostPorts: [8444, 8445],
};
const owner = { kind: "managed-service", id: "s" };

function linesOfChain(text: string, name: string): string[] {
  const lines = text.split("\n").map((line) => line.trim());
  const begin = lines.indexOf(`chain ${name} {`);
  return begin < 0 ? [] : lines.slice(begin + 1, lines.indexOf("}", begin));
}

test("without a rule every machine is closed, and the host is open on its ports only", () => {
  const text = edgeRuleset(config, []);
  expect(text.startsWith("add table inet holdfast_77\ndelete table inet holdfast_77\n")).toBe(true);
  expect(linesOfChain(text, "to_machine")).toEqual([
    "ct direction reply accept",
    "ct state related accept",
    "goto refused",
  ]);
  expect(linesOfChain(text, "from_machine")).toEqual([
    "ct direction reply accept",
    "ip daddr 10.77.0.1 tcp dport 8444 accept",
    "ip daddr 10.77.0.1 udp dport 8444 accept",
    "ip daddr 10.77.0.1 tcp dport 8445 accept",
    "ip daddr 10.77.0.1 udp dport 8445 accept",
    "goto refused",
  ]);
});

test("machines of a host without controllers may call no port of it", () => {
  const text = edgeRuleset({ ...config, hostPorts: [] }, []);
  expect(linesOfChain(text, "from_machine")).toEqual(["ct direction reply accept", "goto refused"]);
});

test("a rule opens its port to its networks by address family, and names its owner", () => {
  const from = ["192.0.2.0/24", "198.51.100.7/32", "2001:db8::/32"];
  const text = edgeRuleset(config, [{ owner, to: "10.77.0.2", port: 5432, from }]);
  expect(linesOfChain(text, "to_10_77_0_2")).toEqual([
    'ip saddr 192.0.2.0/24 tcp dport 5432 accept comment "managed-service s"',
    'ip saddr 198.51.100.7/32 tcp dport 5432 accept comment "managed-service s"',
    'ip6 saddr 2001:db8::/32 tcp dport 5432 accept comment "managed-service s"',
  ]);
  expect(linesOfChain(text, "to_machine")).toContain("ip daddr 10.77.0.0/28 jump near_10_77_0_0_28");
  expect(linesOfChain(text, "near_10_77_0_0_28")).toEqual(["ip daddr 10.77.0.2 jump to_10_77_0_2"]);
});

test("a machine's public address has its own rules, and is closed without one", () => {
  const rule = { owner, port: 5432, from: ["192.0.2.0/24"] };
  const text = edgeRuleset(config, [
    { ...rule, to: "10.77.0.2" },
    { ...rule, to: "203.0.113.17" },
    { owner, to: "10.77.0.2", port: null, from: ["10.77.0.3/32"] },
  ]);
  expect(linesOfChain(text, "to_203_0_113_17")).toEqual([
    'ip saddr 192.0.2.0/24 tcp dport 5432 accept comment "managed-service s"',
  ]);
  expect(linesOfChain(text, "forward").slice(1)).toEqual([
    "ip daddr 10.77.0.0/16 goto to_machine",
    "ip daddr 203.0.113.16/28 goto to_machine",
    'oifname "hf77-*" goto to_machine',
    'iifname "hf77-*" goto from_machine',
  ]);
});

test("a rule without networks opens nothing", () => {
  const text = edgeRuleset(config, [{ owner, to: "10.77.0.2", port: 5432, from: [] }]);
  expect(linesOfChain(text, "to_10_77_0_2")).toEqual([]);
});

test("peers reach every port of a machine", () => {
  const text = edgeRuleset(config, [{ owner, to: "10.77.0.2", port: null, from: ["10.77.0.3/32"] }]);
  expect(linesOfChain(text, "to_10_77_0_2")).toEqual(['ip saddr 10.77.0.3/32 accept comment "managed-service s"']);
});

test("a rule for a controller lets machines call it, and does not open the machines", () => {
  const controller = { kind: "controller", id: "c-2" };
  const text = edgeRuleset(config, [
    { owner: controller, to: "10.77.0.1", port: 9001, from: ["0.0.0.0/0"] },
    { owner: controller, to: "192.0.2.9", port: 8444, from: ["0.0.0.0/0"] },
    { owner: controller, to: "2001:db8::9", port: 8444, from: ["::/0"] },
  ]);
  expect(linesOfChain(text, "from_machine").slice(5)).toEqual([
    'ip daddr 10.77.0.1 ip saddr 0.0.0.0/0 tcp dport 9001 accept comment "controller c-2"',
    'ip daddr 192.0.2.9 ip saddr 0.0.0.0/0 tcp dport 8444 accept comment "controller c-2"',
    'ip6 daddr 2001:db8::9 ip6 saddr ::/0 tcp dport 8444 accept comment "controller c-2"',
    "goto refused",
  ]);
  expect(linesOfChain(text, "to_machine")).toContain("goto refused");
  expect(text).not.toContain("near_");
  expect(linesOfChain(text, "forward").at(-1)).toBe('iifname "hf77-*" goto from_machine');
});

test("a packet is matched against networks of sixteen addresses before single addresses", () => {
  const to = ["10.77.0.2", "10.77.0.15", "10.77.0.16", "10.77.1.2", "203.0.113.17"];
  const text = edgeRuleset(
    config,
    to.map((address) => ({ owner, to: address, port: 5432, from: ["192.0.2.0/24"] })),
  );
  expect(linesOfChain(text, "to_machine").slice(2, -1)).toEqual([
    "ip daddr 10.77.0.0/28 jump near_10_77_0_0_28",
    "ip daddr 10.77.0.16/28 jump near_10_77_0_16_28",
    "ip daddr 10.77.1.0/28 jump near_10_77_1_0_28",
    "ip daddr 203.0.113.16/28 jump near_203_0_113_16_28",
  ]);
  expect(linesOfChain(text, "near_10_77_0_0_28")).toEqual([
    "ip daddr 10.77.0.15 jump to_10_77_0_15",
    "ip daddr 10.77.0.2 jump to_10_77_0_2",
  ]);
  // A set could interrupt sessions.
  expect(text.split("\n").filter((line) => /[{}]/.test(line) && !/^ *(table|chain) .*\{$|^ *\}$/.test(line))).toEqual(
    [],
  );
});
