import { expect, test } from "vitest";
import { machinePaths } from "../local/machine-paths.ts";
import { guestRefusal } from "./admission.ts";
import { type VirtualMachineSpec, virtualMachineConfig } from "./virtual-machine-config.ts";

const spec: VirtualMachineSpec = {
  machineId: "m1",
  installationId: "i1",
  nodeImage: "trixie-0123456789abcdef",
  pool: "p",
  plan: { vcpu: 2, memoryBytes: 4 * 1024 ** 3 },
  address: "10.77.0.5",
  hostAddress: "10.77.0.1",
  hostName: "hf77-5",
  paths: machinePaths("/m/m1", ""),
  boot: { id: "guest-1", kernel: "/g/kernel", initramfs: "/g/initramfs" },
  disks: {
    image: "/d/image",
    node: "/d/node",
    code: "/d/code",
    data: "/m/data",
    state: "/m/state",
    enrollment: "/m/e",
  },
  monitor: "/m/m1/monitor.sock",
  resolvers: ["192.0.2.53", "192.0.2.54"],
  command: ["/bin/first", "it's"],
};

/** Arguments of QEMU, split like in a shell. */
function words(text: string): string[] {
  return [...text.matchAll(/(?:'[^']*'|\\'|[^\s'\\])+/g)].map(([word]) =>
    word.replaceAll("\\'", "\0").replaceAll("'", "").replaceAll("\0", "'"),
  );
}

test("a guest has complete processors and its memory, and no container settings", () => {
  const { type, config, source } = virtualMachineConfig(spec);
  expect({ type, source }).toEqual({ type: "virtual-machine", source: { type: "none" } });
  expect(config).toMatchObject({ "limits.cpu": "2", "limits.memory": "4294967296", "boot.autostart": "false" });
  for (const key of ["raw.lxc", "limits.cpu.allowance", "limits.processes", "security.idmap.isolated"])
    expect(config).not.toHaveProperty([key]);
});

test("shared parts of guests are read-only disks, and own parts are writable disks", () => {
  const { devices } = virtualMachineConfig(spec);
  const readonly = Object.entries(devices).flatMap(([name, device]) =>
    "readonly" in device && device.readonly === "true" ? name : [],
  );
  expect(readonly.sort()).toEqual(["code", "enrollment", "image", "node"]);
  expect(devices.data).toEqual({ type: "disk", source: "/m/data", readonly: "false", "io.bus": "virtio-blk" });
  expect(devices.root).toMatchObject({ path: "/", pool: "p" });
  expect(devices.eth0).toMatchObject({ nictype: "routed", "ipv4.address": "10.77.0.5", host_name: "hf77-5" });
});

test("the kernel's command line has the environment of init and, after --, the first program", () => {
  const [, kernel, , initramfs, , append = ""] = words(virtualMachineConfig(spec).config["raw.qemu"] ?? "");
  expect([kernel, initramfs]).toEqual(["/g/kernel", "/g/initramfs"]);
  const [before = "", first] = append.split(" -- ");
  expect(first).toBe("/bin/first it's");
  expect(before.split(" ")).toEqual(
    expect.arrayContaining([
      "HOLDFAST_ADDRESS=10.77.0.5",
      "HOLDFAST_GATEWAY=10.77.0.1",
      "HOLDFAST_IMAGE=trixie-0123456789abcdef",
      "HOLDFAST_RESOLVERS=192.0.2.53,192.0.2.54",
    ]),
  );
  expect(append).not.toContain("HOLDFAST_PUBLIC_ADDRESS");
  const both = virtualMachineConfig({ ...spec, publicAddress: "198.51.100.7" });
  expect(both.config["raw.qemu"]).toContain("HOLDFAST_PUBLIC_ADDRESS=198.51.100.7");
  expect(both.devices.eth0).toMatchObject({ "ipv4.address": "10.77.0.5,198.51.100.7" });
});

test.each([
  [{ kvm: true, vsock: false, qemu: false }, "KVM"],
  [{ kvm: false, vsock: true, qemu: false }, "vhost_vsock"],
  [{ kvm: false, vsock: false, qemu: true }, "qemu-system-x86"],
  [{ kvm: false, vsock: false, qemu: false }, "log of incusd"],
])("the refusal of a host that lacks %j has the remedy", (obstacles, reason) => {
  expect(guestRefusal(obstacles)).toContain(reason);
});
