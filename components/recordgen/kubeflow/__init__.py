"""Steps of Kubeflow Pipelines and Vertex AI Pipelines. They run in the container, without kfp.

python -m recordgen.kubeflow STEP --executor-input '{{$}}'

Each step is a module; steps/ holds the compiled file of each.
"""
