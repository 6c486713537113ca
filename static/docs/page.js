"use strict";

const container = document.getElementById("swagger-ui");

SwaggerUIBundle({
  url: container.dataset.schema,
  domNode: container,
  deepLinking: true,
  displayRequestDuration: true,
  // By default, Swagger UI sends the schema to an external validator.
  validatorUrl: null,
});
