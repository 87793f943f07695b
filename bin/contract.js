// `npm run contract`: makes the current protos the contract that `npm run check` guards. Refuses breaking changes
// without `-- --break`, which needs a reason in the commit message (docs/reference/api-stability.md).
import { contractFolder, withImage, writeContract } from "./contract-image.js";
import { progress, setUp } from "./set-up.js";
import { toolsFor } from "./tools.js";

const { env } = await setUp();
const tools = toolsFor(env);
try {
  await withImage(tools, async (image, findBreaks) => {
    if (!process.argv.includes("--break")) await findBreaks();
    writeContract(image);
  });
  progress(`renewed ${contractFolder}; commit it with the protos`);
} catch (error) {
  progress(error.message);
  process.exitCode = 1;
}
