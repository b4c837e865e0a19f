"""Steps of Kubeflow Pipelines and Vertex AI Pipelines, run in the container; kfp is not needed.

python -m recordgen.kubeflow STEP --executor-input '{{$}}'

    execution.py  what a backend hands a step, and what the step hands back
    places.py     where an artifact is read and written
    convert.py    import files → dataset: the step of component.yaml
    statistics.py, train.py, evaluate.py, push.py
                  what else pipelines/kubeflow.py is made of
"""
