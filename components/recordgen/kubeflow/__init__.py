"""Steps of Kubeflow Pipelines and Vertex AI Pipelines. They run in the container, without kfp.

python -m recordgen.kubeflow STEP --executor-input '{{$}}'

Each step is a module; ``python -m pipelines.component`` compiles the file of each.
"""
