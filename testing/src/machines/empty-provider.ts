import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";

/** A provider without machines, for tests of the connection to it. */
export const emptyProvider: ComputeProvider = {
  name: "test",
  create: () => Promise.reject(new Error("not expected")),
  async start() {},
  async stop() {},
  async resize() {},
  async replaceImage() {},
  async growDisk() {},
  async destroy() {},
  list: async () => [],
  get: async () => undefined,
  async fence() {},
  watch: () => ({ close() {} }),
  admit: async () => ({ admitted: true }),
  images: async () => [],
};
