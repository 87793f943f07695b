import type { ArtifactPath, ArtifactRequest, MavenRequest, TextRequest } from "../artifact.ts";
import type { PluginHost } from "../opensearch-plugin.ts";
import { basePackages, type Recipe } from "../recipe.ts";

const version = "2.19.4";
const directory = "/usr/local/share/opensearch";
/** Contents of the distribution's archive. */
export const opensearchHome = `${directory}/opensearch-${version}` as const;

interface Module {
  readonly name: string;
  /** Class by which the engine loads it. */
  readonly className: string;
  /** Module whose classes it uses. */
  readonly extends?: string;
  /** Rights of its classes under Java's security manager; absent: none. */
  readonly permissions?: readonly string[];
  readonly jars: readonly (readonly [group: string, artifact: string, version: string, sha256: string])[];
}

const plugin = "org.opensearch.plugin";
const library = "org.opensearch";
const http = "org.apache.httpcomponents";
const asm = "org.ow2.asm";
const runtime = (name: string) => `java.lang.RuntimePermission "${name}"`;

/**
 * Modules of the engine's own distribution. Registries have their jars alone, so each gets its description here. The
 * module of reindexing has an HTTP client for other clusters, and no right to use it.
 */
// biome-ignore format: a line a file
const modules: readonly Module[] = [
  {
    name: "aggs-matrix-stats",
    className: "org.opensearch.search.aggregations.matrix.MatrixAggregationPlugin",
    jars: [[plugin, "aggs-matrix-stats-client", version, "0d4713cd6fa71feb004b233dfefcf21d01e0c277f2e1a6c37ff5fd67a5047301"]],
  },
  {
    name: "analysis-common",
    className: "org.opensearch.analysis.common.CommonAnalysisPlugin",
    extends: "lang-painless",
    jars: [[plugin, "analysis-common", version, "46db3a6c8fc53f756853d29b4d14fc326ce96a0f56b62aeb289a8126ec513e66"]],
  },
  {
    name: "geo",
    className: "org.opensearch.geo.GeoModulePlugin",
    jars: [[plugin, "geo", version, "6e9c50c55842f1f0bb7ac32299ba8b71ddabf76c2498ed8a5faac29a443dd472"]],
  },
  {
    name: "ingest-common",
    className: "org.opensearch.ingest.common.IngestCommonPlugin",
    extends: "lang-painless",
    jars: [
      [plugin, "ingest-common", version, "45d44c2f603dec960965a425ccb25e5466a9f1b13621a390182e643dedb9ba9c"],
      [library, "opensearch-dissect", version, "5bb4c6f82059349a50caff51b4088cb9706c9513a99afcf47f4fcac97b71812b"],
      [library, "opensearch-grok", version, "a18eb8dd46ab4ac6e64ff4b11a260f95907348577e6047fce102fb5d654c4f64"],
      ["org.jruby.jcodings", "jcodings", "1.0.61", "3238c68a2f86cec53cc184ad26df8352db87bb22a419bd17fb4acdfbb0bc40f0"],
      ["org.jruby.joni", "joni", "2.2.1", "b3e4b657a3ed1d8f684114f6baa462d553a5932a865c1574695498dda8577748"],
    ],
  },
  {
    name: "lang-mustache",
    className: "org.opensearch.script.mustache.MustachePlugin",
    permissions: [runtime("accessDeclaredMembers")],
    jars: [
      [plugin, "lang-mustache-client", version, "8d4ed99d15d2bcaac0bb0697d1564052d58fa008da28df42dcde2922d2fed5d7"],
      ["com.github.spullara.mustache.java", "compiler", "0.9.14", "99a7e7855609135006f078e6de7ee69daad9c42f98e679d56f80653cb17526b9"],
    ],
  },
  {
    name: "lang-painless",
    className: "org.opensearch.painless.PainlessPlugin",
    permissions: [runtime("createClassLoader"), runtime("getClassLoader")],
    jars: [
      [plugin, "lang-painless", version, "5b382333ecc637d0e5304af9987056260e3d68a9149e3d32824b193e041b1d60"],
      [plugin, "opensearch-scripting-painless-spi", version, "06ec9ff0970dd8ed186805ecf7c4257de2e819b646e19e466d27f73caefa9e43"],
      ["org.antlr", "antlr4-runtime", "4.13.1", "54665d2838cc66458343468efc539e454fc95b46a8a04b13c6ac43fc9be63505"],
      [asm, "asm", "9.7", "adf46d5e34940bdf148ecdd26a9ee8eea94496a72034ff7141066b3eea5c4e9d"],
      [asm, "asm-analysis", "9.7", "7bc6bcbc21379948a0c8c467fb0f864206e5b818f6bc0b546872f5c9f941556f"],
      [asm, "asm-commons", "9.7", "389bc247958e049fc9a0408d398c92c6d370c18035120395d4cba1d9d9304b7a"],
      [asm, "asm-tree", "9.7", "62f4b3bc436045c1acb5c3ba2d8ec556ec3369093d7f5d06c747eb04b56d52b1"],
      [asm, "asm-util", "9.7", "37a6414d36641973f1af104937c95d6d921b2ddb4d612c66c5a9f2b13fc14211"],
    ],
  },
  {
    name: "mapper-extras",
    className: "org.opensearch.index.mapper.MapperExtrasPlugin",
    jars: [[plugin, "mapper-extras-client", version, "fc1565cfdb1beb7a44e0585039000dab5de76ccee90c7038fa1c073bfff759eb"]],
  },
  {
    name: "parent-join",
    className: "org.opensearch.join.ParentJoinPlugin",
    jars: [[plugin, "parent-join-client", version, "63967e7c6879d630a89ff634b05c38f180c75d80f1027ebe5488c458241f2d4d"]],
  },
  {
    name: "percolator",
    className: "org.opensearch.percolator.PercolatorPlugin",
    jars: [[plugin, "percolator-client", version, "6667fd65279d276b5471a784b9dd02ccad2d4a3e6280fba95f70f03b3eb98c3d"]],
  },
  {
    name: "rank-eval",
    className: "org.opensearch.index.rankeval.RankEvalPlugin",
    jars: [[plugin, "rank-eval-client", version, "daf1d3a17bba8f323cc23cb2ff6ac88b22fd69acc402b1e09f6626098a692668"]],
  },
  {
    name: "reindex",
    className: "org.opensearch.index.reindex.ReindexPlugin",
    jars: [
      [plugin, "reindex-client", version, "ae498328ad68e54bf0024c8fc047f1f9c217bc18d70931c11905dcb73926c2fc"],
      [library, "opensearch-ssl-config", version, "9ed3bc92e44e52f7cd2610668cba5bc935bea786551d92e68f147aa08f083a6e"],
      ["org.opensearch.client", "opensearch-rest-client", version, "0a8dc727d9f9119b51f4451f52a36ad263a9b66df60935e3a820fc17713cf1cf"],
      ["commons-codec", "commons-codec", "1.17.2", "4148332728490cef12b29dac4c385f46982f04285132c6fa51ad7267d7dc7a8b"],
      ["commons-logging", "commons-logging", "1.2", "daddea1ea0be0f56978ab3006b8ac92834afeefbd9b7e4e6316fca57df0fa636"],
      [http, "httpasyncclient", "4.1.5", "0c1877489a9d1ba4fa50f6cfcab11d1123618858cb31d56afaab5afdd5064d99"],
      [http, "httpclient", "4.5.14", "c8bc7e1c51a6d4ce72f40d2ebbabf1c4b68bfe76e732104b04381b493478e9d6"],
      [http, "httpcore", "4.4.16", "6c9b3dd142a09dc468e23ad39aad6f75a0f2b85125104469f026e52a474e464f"],
      [http, "httpcore-nio", "4.4.16", "4018736ede2d321034e8517ea90baefb31831a8608afccc446d8a699fb1d00d4"],
    ],
  },
  {
    name: "search-pipeline-common",
    className: "org.opensearch.search.pipeline.common.SearchPipelineCommonModulePlugin",
    extends: "lang-painless",
    jars: [[plugin, "search-pipeline-common", version, "260b969bd0cbc4942bd3f45503ee0a2f82250a048d2e9bf76a80b0c1997171d7"]],
  },
];

function artifactsOf(module: Module): ArtifactRequest[] {
  const { name, jars, permissions = [] } = module;
  const at = (file: string): ArtifactPath => `${opensearchHome}/modules/${name}/${file}`;
  const text = (file: string, content: string): TextRequest => ({
    kind: "text",
    name: `opensearch-${name}-${file}`,
    version,
    text: content,
    path: at(file),
  });
  return [
    ...jars.map(
      ([group, artifact, of, sha256]): MavenRequest => ({
        kind: "maven",
        group,
        artifact,
        version: of,
        sha256,
        path: at(`${artifact}-${of}.jar`),
      }),
    ),
    text("plugin-descriptor.properties", descriptorOf(module)),
    ...(permissions.length === 0
      ? []
      : [
          text(
            "plugin-security.policy",
            `grant {\n${permissions.map((each) => `  permission ${each};\n`).join("")}};\n`,
          ),
        ]),
  ];
}

/** The engine reads these names; it refuses a descriptor without one of them. */
function descriptorOf({ name, className, extends: base = "" }: Module): string {
  const entries = {
    name,
    description: `Module ${name}`,
    version,
    "opensearch.version": version,
    "java.version": "11",
    classname: className,
    "custom.foldername": "",
    "extended.plugins": base,
    "has.native.controller": "false",
  };
  return Object.entries(entries)
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");
}

/** The engine of the image, as plugins of operators find it. */
export const opensearchPluginHost: PluginHost = {
  version,
  has: new Set([...modules.map(({ name }) => name), "transport-netty4", "opensearch-security"]),
};

/**
 * The engine with its security plugin, and the modules that its full distribution has. `openssl` creates the
 * certificates between the front and the engine.
 */
export const opensearch = {
  suite: "trixie",
  packages: [...basePackages, "default-jre-headless", "haproxy", "openssl"],
  software: [
    {
      program: "opensearch",
      version: "2.19",
      path: "/usr",
      executable: "opensearch-node",
      package: "org.opensearch.distribution.integ-test-zip:opensearch",
    },
  ],
  artifacts: [
    {
      kind: "maven",
      group: "org.opensearch.distribution.integ-test-zip",
      artifact: "opensearch",
      version,
      extension: "zip",
      sha256: "3902e642715210d1d9d7cbdcc8f5abd6f931d1d7a679cea3750937becf16c406",
      unpack: true,
      path: directory,
    },
    {
      kind: "maven",
      group: plugin,
      artifact: "opensearch-security",
      version: `${version}.0`,
      extension: "zip",
      sha256: "1f673622c462c4171a8c53f9b1ad20e5b839834cb79b0d3b388da180a0e514e8",
      unpack: true,
      path: `${opensearchHome}/plugins/opensearch-security`,
    },
    ...modules.flatMap(artifactsOf),
  ],
} as const satisfies Recipe;
