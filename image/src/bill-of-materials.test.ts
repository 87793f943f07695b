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

const artifact = { version: "2.0.1", sha256: "cd".repeat(32), sizeBytes: 1 } as const;
const module = { name: "golang.org/x/term", version: "v0.25.0", sum: "h1:abc=" };
const withArtifacts = manifestOf("trixie", {
  packages: small.packages,
  script: "",
  installed: true,
  artifacts: {
    script: "",
    files: [
      { ...artifact, kind: "npm", name: "@ada/lib", path: "/usr/local/lib/lib", form: "tarball" },
      { ...artifact, kind: "maven", name: "org.ada:lib", extension: "zip", path: "/usr/local/lib/a.zip", form: "file" },
      { ...artifact, kind: "maven", name: "org.ada:lib", extension: "zip", path: "/usr/local/lib/b.zip", form: "file" },
      { ...artifact, kind: "text", name: "lib-settings", path: "/usr/local/lib/settings", form: "file" },
      {
        ...artifact,
        kind: "go",
        name: "ada.example/tool",
        version: "v1.2.0",
        sum: "h1:def=",
        path: "/usr/local/bin/tool",
        form: "program",
        modules: [{ name: "std", version: "1.26.1" }, module],
      },
    ],
  },
});

test("each artifact has its package URL and hash, and a program has its modules", () => {
  const bill = billOfMaterials(withArtifacts) as {
    components: { purl: string; type: string; "bom-ref": string }[];
    dependencies: { ref: string; dependsOn: string[] }[];
  };
  const added = bill.components.filter(({ purl }) => !purl.startsWith("pkg:deb/"));
  expect(added.map(({ type, purl }) => `${type} ${purl}`)).toEqual([
    "library pkg:generic/lib-settings@2.0.1",
    "application pkg:golang/ada.example/tool@v1.2.0",
    "library pkg:maven/org.ada/lib@2.0.1?type=zip",
    "library pkg:maven/org.ada/lib@2.0.1?type=zip",
    "library pkg:npm/%40ada/lib@2.0.1",
    "library pkg:golang/golang.org/x/term@v0.25.0",
    "library pkg:golang/std@1.26.1",
  ]);
  expect(new Set(bill.components.map((each) => each["bom-ref"])).size).toBe(bill.components.length);
  const tool = added.find(({ type }) => type === "application");
  expect(tool).toMatchObject({ properties: [{ value: "/usr/local/bin/tool" }, { value: "h1:def=" }] });
  expect(bill.dependencies.find(({ ref }) => ref === tool?.["bom-ref"])?.dependsOn).toEqual([
    "pkg:golang/golang.org/x/term@v0.25.0",
    "pkg:golang/std@1.26.1",
  ]);
  expect(bill.dependencies[0]?.dependsOn).toHaveLength(small.packages.length + 5);
});

const real = image && readManifest(imagesDir, image.id);
test.each([
  ["a small one", small],
  ["one with artifacts", withArtifacts],
  ...(real === undefined ? [] : [["the image that is made", real] as const]),
] as const)("the bill is CycloneDX 1.6: %s", async (_, manifest) => {
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  expect(await validator.validate(JSON.stringify(billOfMaterials(manifest)))).toBeNull();
  const broken = JSON.stringify({ ...billOfMaterials(manifest), components: [{ name: "no type" }] });
  expect(await validator.validate(broken)).not.toBeNull();
});
