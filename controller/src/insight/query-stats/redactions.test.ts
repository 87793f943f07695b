import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { expect, test } from "vitest";
import { loadRedaction } from "./redactions.ts";

test.each(engineCatalog.filter(({ hasQueryStatistics }) => hasQueryStatistics).map(({ engine }) => engine))(
  "statements of %s are shown without their literals",
  async (engine) => {
    const redact = await loadRedaction(engine);
    expect(redact(engine === "mysql" ? "SELECT `x` FROM `t` WHERE `a` = ?" : "SELECT x FROM t WHERE a = $1")).toContain(
      "FROM",
    );
    expect(redact("SELECT 'secret")).not.toContain("secret");
  },
);

test("statements of an engine without query statistics are not shown", async () => {
  await expect(loadRedaction("kafka")).rejects.toThrow("no redaction");
});
