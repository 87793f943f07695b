import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { expect, test } from "vitest";
import { billOfMaterials } from "./bill-of-materials.ts";
import { manifestOf, readManifest } from "./image-manifest.ts";
import { findImage, imagesDirectory } from "./node-image.ts";
import type { Package } from "./package-set.ts";

const imagesDir = imagesDirectory(process.env);
const image = findImage(imagesDir, "trixie");

function packageOf(name: string, control: string): Package {
  const text = `Package: ${name}\nHomepage: https://example.com/${name}\nMaintainer: Ada <ada@example.com>\n${control}`;
  return { name, version: "1:2.0+b1", architecture: "amd64", sha256: "ab".repeat(32), sizeBytes: 1, control: text };
}

const small = manifestOf("trixie", {
  packages: [
    packageOf("tini", "Depends: libc6 (>= 2.34), none | libgcc-s1, awk:any\nPre-Depends: libc6"),
    packageOf("libgcc-s1", "Source: gcc-14"),
    packageOf("libc6", "Depends: libgcc-s1"),
  ],
  script: "",
  installed: true,
});

test("each package has its package URL, hash and dependencies", () => {
  const bill = billOfMaterials(small) as { components: { name: string }[]; dependencies: unknown[] };
  const purl = (name: string) => `pkg:deb/debian/${name}@1%3A2.0%2Bb1?arch=amd64&distro=trixie`;
  expect(bill.components.map(({ name }) => name)).toEqual(["libc6", "libgcc-s1", "tini"]);
  expect(bill.components[2]).toMatchObject({
    purl: purl("tini"),
    hashes: [{ alg: "SHA-256", content: "ab".repeat(32) }],
    supplier: { name: "Ada" },
  });
  expect(bill.dependencies).toContainEqual({ ref: purl("tini"), dependsOn: [purl("libc6"), purl("libgcc-s1")] });
  expect(billOfMaterials(small)).toEqual(bill);
});

const real = image && readManifest(imagesDir, image.id);
test.each([
  ["a small one", small],
  ...(real === undefined ? [] : [["the image that is made", real] as const]),
] as const)("the bill is CycloneDX 1.6: %s", async (_, manifest) => {
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  expect(await validator.validate(JSON.stringify(billOfMaterials(manifest)))).toBeNull();
  const broken = JSON.stringify({ ...billOfMaterials(manifest), components: [{ name: "no type" }] });
  expect(await validator.validate(broken)).not.toBeNull();
});
