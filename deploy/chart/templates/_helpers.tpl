{{- define "memory-gateway.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "memory-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "memory-gateway.labels" -}}
{{ include "memory-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "memory-gateway.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "memory-gateway.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "memory-gateway.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* Settings without a secret, as names and values. */ -}}
{{- define "memory-gateway.settings" -}}
MEMORY_GATEWAY_PROFILE: production
MEMORY_GATEWAY_ENV_FILE: ""
MEMORY_GATEWAY_ALLOWED_HOSTS: {{ .Values.host | quote }}
MEMORY_GATEWAY_TRUSTED_PROXIES: {{ .Values.trustedProxies | quote }}
MEMORY_GATEWAY_STORAGE_URL: {{ .Values.storage.url | quote }}
AWS_REGION: {{ .Values.storage.region | quote }}
TMPDIR: /data
{{- with .Values.basePath }}
MEMORY_GATEWAY_BASE_PATH: {{ . | quote }}
{{- end }}
{{- with .Values.storage.endpoint }}
AWS_ENDPOINT_URL_S3: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- /* The Secrets, as sources of environment variables. */ -}}
{{- define "memory-gateway.secrets" -}}
{{- range $name := list "gateway" "postgresql" "s3" "redis" }}
{{- with index $.Values.secrets $name }}
- secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "memory-gateway.container" -}}
image: {{ include "memory-gateway.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "memory-gateway.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* The environment of a hook, which runs before there is a ConfigMap. */ -}}
{{- define "memory-gateway.environment" -}}
env:
  {{- range $name, $value := include "memory-gateway.settings" . | fromYaml }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
envFrom: {{- include "memory-gateway.secrets" . | trim | nindent 2 }}
{{- end }}
