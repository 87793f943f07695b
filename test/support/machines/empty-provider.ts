import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";

/** A provider that has no machine and does nothing, for tests of the way to it. */
export const emptyProvider: ComputeProvider = {
  name: "test",
  create: () => Promise.reject(new Error("not asked")),
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
