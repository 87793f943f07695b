import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { opensearchHome, opensearchPluginHost } from "@holdfast/image/recipes/opensearch.ts";
import { zipOf } from "../zip.ts";

/**
 * A stand-in of the plugin for models, whose own zip no registry has: it has the settings that the platform sets, and
 * can be extended.
 */
const modelsPlugin = `package holdfast;

import java.util.List;
import org.opensearch.common.settings.Setting;
import org.opensearch.plugins.ExtensiblePlugin;
import org.opensearch.plugins.Plugin;

public class ModelsPlugin extends Plugin implements ExtensiblePlugin {
  private static Setting<Boolean> setting(String name, boolean value) {
    return Setting.boolSetting("plugins.ml_commons." + name, value, Setting.Property.NodeScope);
  }

  @Override
  public List<Setting<?>> getSettings() {
    return List.of(
      setting("only_run_on_ml_node", true),
      setting("allow_registering_model_via_local_file", false),
      setting("allow_registering_model_via_url", false),
      setting("remote_inference.enabled", true));
  }
}
`;

/** A stand-in of neural search: its processor counts words, where the original has a model weigh them. */
const sparsePlugin = `package holdfast;

import java.util.HashMap;
import java.util.Map;
import org.opensearch.ingest.AbstractProcessor;
import org.opensearch.ingest.ConfigurationUtils;
import org.opensearch.ingest.IngestDocument;
import org.opensearch.ingest.Processor;
import org.opensearch.plugins.IngestPlugin;
import org.opensearch.plugins.Plugin;

public class SparsePlugin extends Plugin implements IngestPlugin {
  private static final String TYPE = "sparse_encoding";

  @Override
  public Map<String, Processor.Factory> getProcessors(Processor.Parameters parameters) {
    return Map.of(TYPE, (registry, tag, description, config) -> {
      ConfigurationUtils.readStringProperty(TYPE, tag, config, "model_id");
      return new Sparse(tag, description, ConfigurationUtils.readMap(TYPE, tag, config, "field_map"));
    });
  }

  private static final class Sparse extends AbstractProcessor {
    private final Map<String, Object> fields;

    Sparse(String tag, String description, Map<String, Object> fields) {
      super(tag, description);
      this.fields = fields;
    }

    @Override
    public IngestDocument execute(IngestDocument document) {
      fields.forEach((from, to) -> {
        Map<String, Object> weights = new HashMap<>();
        for (String word : document.getFieldValue(from, String.class).toLowerCase().split(" "))
          weights.merge(word, 1.0, (a, b) -> (Double) a + (Double) b);
        document.setFieldValue(to.toString(), weights);
      });
      return document;
    }

    @Override
    public String getType() {
      return TYPE;
    }
  }
}
`;

/** Text of a descriptor for the engine that images have, with these differences. */
export function pluginDescriptor(different: Readonly<Record<string, string>> = {}): string {
  const values = {
    name: "words",
    description: "A plugin of a test",
    version: "1.0",
    "opensearch.version": opensearchPluginHost.version,
    "java.version": "11",
    classname: "holdfast.WordsPlugin",
    ...different,
  };
  return Object.entries(values)
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");
}

/** True if this host can compile the plugins of `writeModelPlugins`. */
export async function hasJavaCompiler(): Promise<boolean> {
  return runProgram("javac", ["-version"]).then(
    () => true,
    () => false,
  );
}

/** Compiles the stand-ins with the engine of the newest image, and writes their zips into the directory. */
export async function writeModelPlugins(directory: string): Promise<void> {
  await writePlugin(directory, "opensearch-ml", "ModelsPlugin", modelsPlugin);
  const other = { "extended.plugins": "opensearch-ml" };
  await writePlugin(directory, "opensearch-neural-search", "SparsePlugin", sparsePlugin, other);
}

async function writePlugin(
  directory: string,
  name: string,
  className: string,
  source: string,
  different: Readonly<Record<string, string>> = {},
): Promise<void> {
  const image = findImage(imagesDirectory(process.env), "opensearch");
  if (image === undefined) throw new Error("no image has OpenSearch");
  const work = mkdtempSync(join(tmpdir(), "holdfast-plugin-"));
  try {
    writeFileSync(join(work, `${className}.java`), source);
    const libraries = join(image.root, opensearchHome, "lib", "*");
    await runProgram("javac", [
      "--release",
      "11",
      "-nowarn",
      "-cp",
      libraries,
      "-d",
      work,
      join(work, `${className}.java`),
    ]);
    const classes = readdirSync(join(work, "holdfast")).sort();
    const jar = zipOf(
      classes.map((file) => ({ name: `holdfast/${file}`, content: readFileSync(join(work, "holdfast", file)) })),
    );
    const descriptor = pluginDescriptor({ name, classname: `holdfast.${className}`, ...different });
    const files = [
      { name: "plugin-descriptor.properties", content: descriptor },
      { name: `${name}.jar`, content: jar },
    ];
    writeFileSync(join(directory, `${name}.zip`), zipOf(files));
  } finally {
    rmSync(work, { recursive: true });
  }
}
