// The contract as an image of the protos, and the comparison with it. Needs neither git history nor a network.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";

export const contractImage = "proto/contract.binpb.gz";

/**
 * Builds an image of the current protos; calls back with it and with a function that throws for each breaking change.
 */
export async function withImage(tools, act) {
  const directory = mkdtempSync(join(checkout, "node_modules", ".contract-"));
  const image = join(directory, "now.binpb.gz");
  try {
    await tools.run("buf", ["build", "--exclude-source-info", "-o", image]);
    return await act(image, () =>
      tools.run("buf", ["breaking", image, "--against", contractImage, "--config", "proto/contract.yaml"]),
    );
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
