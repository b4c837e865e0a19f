"""Steps of Kubeflow Pipelines and Vertex AI Pipelines. They run in the container, without kfp.

python -m recordgen.kubeflow STEP --executor-input '{{$}}'

The steps are functions of its modules; ``python -m pipelines.component`` compiles the file of each.
"""
