import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import { expect, test } from "vitest";
import { createEngineOffers } from "./engine-offer.ts";

function featuresWith(image: Partial<ImageFacts>) {
  const images = [{ engine: "opensearch", version: "2.19", available: true, ...image }];
  const { features = [] } = createEngineOffers(images).find(({ databaseType }) => databaseType === "opensearch") ?? {};
  return Object.fromEntries(features.map(({ name, available, reason }) => [name, available ? true : reason]));
}

test("features of plugins are available once images get the plugins", () => {
  expect(featuresWith({ plugins: ["opensearch-ml", "opensearch-neural-search", "opensearch-knn"] })).toEqual({
    models: true,
    sparse_encoding: true,
    neural_sparse: true,
  });
  const needs = (plugins: string) => `needs ${plugins}, which the operator adds to every host with OpenSearch`;
  expect(featuresWith({ plugins: ["opensearch-ml"] })).toEqual({
    models: true,
    sparse_encoding: needs("opensearch-neural-search"),
    neural_sparse: needs("opensearch-neural-search"),
  });
  expect(featuresWith({})).toEqual({
    models: needs("opensearch-ml"),
    sparse_encoding: needs("opensearch-ml and opensearch-neural-search"),
    neural_sparse: needs("opensearch-ml and opensearch-neural-search"),
  });
});

test("features of an engine that cannot run have the engine's reason", () => {
  const reason = "the image of opensearch cannot be built: HOLDFAST_OPENSEARCH_PLUGINS: words.zip: it is no zip file";
  expect(featuresWith({ available: false, reason })).toEqual({
    models: reason,
    sparse_encoding: reason,
    neural_sparse: reason,
  });
});

test("engines without plugins have no features", () => {
  const others = createEngineOffers([]).filter(({ databaseType }) => databaseType !== "opensearch");
  expect(others.flatMap(({ features }) => features)).toEqual([]);
});
