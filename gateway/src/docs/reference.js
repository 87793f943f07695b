// This script runs in browsers, on the page /docs.
globalThis.ui = globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  // Operations are rendered when their tag is opened, because to render all of them takes long.
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
  showExtensions: false,
  // The validator would send the document to a server of Swagger.
  validatorUrl: null,
});
