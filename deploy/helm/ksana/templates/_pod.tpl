{{- /* The pod of a server, the same in a StatefulSet and in a Deployment but for the volume of its data. */ -}}
{{- define "ksana.pod" -}}
metadata:
  labels:
    {{- include "ksana.selectorLabels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    {{- if not .Values.existingSecret }}
    checksum/secret: {{ toJson (list .Values.apiKeys .Values.store.url) | sha256sum }}
    {{- end }}
    checksum/settings: {{ toJson .Values.settings | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  # A Service called ksana would set KSANA_PORT to something that is no port.
  enableServiceLinks: false
  automountServiceAccountToken: false
  serviceAccountName: {{ include "ksana.serviceAccountName" . }}
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: ksana
      image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      ports:
        - {name: http, containerPort: 7100}
      envFrom:
        - secretRef: {name: {{ include "ksana.secretName" . }}}
      env:
        {{- with .Values.basePath }}
        - {name: KSANA_BASE_PATH, value: {{ . | quote }}}
        {{- end }}
        {{- with .Values.allowNet }}
        - {name: KSANA_ALLOW_NET, value: {{ join "," . | quote }}}
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      {{- with .Values.probes.startup }}
      startupProbe:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.probes.liveness }}
      livenessProbe:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.probes.readiness }}
      readinessProbe:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- if eq .Values.store.kind "external" }}
    - {name: data, emptyDir: {}}
    {{- end }}
  {{- with .Values.spreadOver }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "ksana.selectorLabels" $ | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
